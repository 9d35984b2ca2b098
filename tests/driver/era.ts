/** What the two eras of MCP want a client to send. */

export const CLIENT_NAME = 'contract-test';
export const MODERN_VERSION = '2026-07-28';

export const VERSION_KEY = 'io.modelcontextprotocol/protocolVersion';
const CAPABILITIES_KEY = 'io.modelcontextprotocol/clientCapabilities';
const CLIENT_INFO_KEY = 'io.modelcontextprotocol/clientInfo';

export function legacyInitialize(clientName: string, protocolVersion: string): object {
  return { protocolVersion, capabilities: {}, clientInfo: { name: clientName, version: '1.0.0' } };
}

export function modernMeta(overrides: { version?: unknown; clientName?: string | undefined } = {}): object {
  const { version = MODERN_VERSION, clientName = CLIENT_NAME } = overrides;
  return {
    [VERSION_KEY]: version,
    [CAPABILITIES_KEY]: {},
    ...('clientName' in overrides && overrides.clientName === undefined
      ? {}
      : { [CLIENT_INFO_KEY]: { name: clientName, version: '1.0.0' } }),
  };
}
