import { sha256Hex } from '../integrity/digest.ts';

/** A server that a URL names. */
export interface Host {
  readonly host: string;
  readonly port: number;
}

/** What a database URL says. Nothing of it but the name of the database may be shown. */
export interface Address {
  readonly hosts: readonly Host[];
  readonly database: string;
  readonly user: string | undefined;
  readonly password: string | undefined;
  readonly ssl: Ssl;
  /** How the database is called in sentences and in `server_health`. */
  readonly shown: string;
  /** Tells this database from others, without telling where it is. */
  readonly id: string;
}

/** TLS as libpq names it. */
type Ssl = (typeof SSL_MODES)[number];

const SSL_MODES = ['disable', 'prefer', 'require', 'verify-ca', 'verify-full'] as const;
const PORT = 5_432;
const PARAMETERS = ['sslmode', 'host', 'port', 'target_session_attrs'];

/** Reads a URL such as `postgres://user:password@one:5432,two/team?sslmode=verify-full`. Undefined where it is not one. */
export function parseAddress(url: string): Address | undefined {
  const parts =
    /^postgres(?:ql)?:\/\/(?:([^:@/?]*)(?::([^@/?]*))?@)?([^/?#]*)\/([^/?#]+)(?:\?([^#]*))?$/.exec(url);
  if (parts === null) return undefined;
  const [, user, password, hosts = '', database = '', query = ''] = parts;
  try {
    const parameters = new URLSearchParams(query);
    if ([...parameters.keys()].some((name) => !PARAMETERS.includes(name))) return undefined;
    const wanted = parameters.get('target_session_attrs') ?? 'read-write';
    const mode = parameters.get('sslmode') ?? 'prefer';
    const ssl = SSL_MODES.find((one) => one === mode);
    const named = parameters.get('host') ?? decodeURIComponent(hosts);
    const list = (named === '' ? 'localhost' : named)
      .split(',')
      .map((one) => hostIn(one, parameters.get('port')));
    if (ssl === undefined || wanted !== 'read-write' || list.includes(undefined)) return undefined;
    const name = decodeURIComponent(database);
    const places = list.flatMap((one) => one ?? []);
    return {
      hosts: places,
      database: name,
      user: user === undefined || user === '' ? undefined : decodeURIComponent(user),
      password: password === undefined ? undefined : decodeURIComponent(password),
      ssl,
      shown: `postgres:${name}`,
      id: `postgres:${sha256Hex(JSON.stringify([places, name])).slice(0, 32)}`,
    };
  } catch {
    // A part that is not encoded as a URL's must be.
    return undefined;
  }
}

/** A name or an address with or without a port, `[::1]:5432`, or the folder of a socket. */
function hostIn(text: string, port: string | null): Host | undefined {
  const [, bracketed, plain, own] = /^(?:\[([0-9a-fA-F:.]+)\]|([^:[\]]+))(?::(\d{1,5}))?$/.exec(text) ?? [];
  const host = bracketed ?? plain;
  const number = Number(own ?? port ?? PORT);
  return host === undefined || !(number > 0 && number < 65_536) ? undefined : { host, port: number };
}
