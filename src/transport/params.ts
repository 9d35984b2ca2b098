/** What is wrong with the parameters of a protocol request, in plain words; undefined where nothing is. */
export function complaintAboutParams(
  method: string,
  params: Readonly<Record<string, unknown>> | undefined,
): string | undefined {
  return CHECKS[method]?.(params ?? {});
}

/**
 * The SDK answers ill-shaped parameters with a dump of its own schema. These are the requests a client of a server with
 * tools only can get wrong; `tools/call` is not among them, because its mistakes are audited.
 */
const CHECKS: Readonly<Record<string, (params: Readonly<Record<string, unknown>>) => string | undefined>> = {
  initialize: ({ protocolVersion, capabilities, clientInfo }) => {
    if (typeof protocolVersion !== 'string')
      return 'initialize needs "protocolVersion", a text such as "2025-11-25".';
    if (!isObject(capabilities)) return 'initialize needs "capabilities", an object; it may be empty.';
    if (
      !isObject(clientInfo) ||
      typeof clientInfo.name !== 'string' ||
      typeof clientInfo.version !== 'string'
    ) {
      return 'initialize needs "clientInfo", an object with the texts "name" and "version".';
    }
    return undefined;
  },
  'tools/list': ({ cursor }) =>
    cursor === undefined || typeof cursor === 'string'
      ? undefined
      : 'tools/list takes a text as "cursor", or none.',
};

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
