type Params = Readonly<Record<string, unknown>>;

/** What is wrong with the parameters of a protocol request, in plain words; undefined where nothing is. */
export function complaintAboutParams(method: string, params: Params = {}): string | undefined {
  return CHECKS.get(method)?.(params);
}

/** A request whose `_meta` the SDK cannot read gets no answer from it at all. */
export function complaintAboutMeta({ _meta: meta }: Params = {}): string | undefined {
  if (meta === undefined) return undefined;
  if (!isObject(meta)) return '"_meta" must be an object.';
  const token = meta.progressToken;
  if (token === undefined || typeof token === 'string' || Number.isSafeInteger(token)) return undefined;
  return '"progressToken" must be a text or a whole number.';
}

/**
 * The SDK answers ill-shaped parameters with a dump of its own schema. These are the requests a client of a server with
 * tools only can get wrong; `tools/call` is not among them, because its mistakes are audited. A map, because a stranger
 * names the method and every object knows `constructor`.
 */
const CHECKS: ReadonlyMap<string, (params: Params) => string | undefined> = new Map([
  ['initialize', complaintAboutInitialize],
  ['tools/list', complaintAboutList],
]);

function complaintAboutInitialize({ protocolVersion, capabilities, clientInfo }: Params): string | undefined {
  if (typeof protocolVersion !== 'string') {
    return 'initialize needs "protocolVersion", a text such as "2025-11-25".';
  }
  if (!isObject(capabilities)) return 'initialize needs "capabilities", an object; it may be empty.';
  if (isObject(clientInfo) && typeof clientInfo.name === 'string' && typeof clientInfo.version === 'string') {
    return undefined;
  }
  return 'initialize needs "clientInfo", an object with the texts "name" and "version".';
}

function complaintAboutList({ cursor }: Params): string | undefined {
  if (cursor === undefined || typeof cursor === 'string') return undefined;
  return 'tools/list takes a text as "cursor", or none.';
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
