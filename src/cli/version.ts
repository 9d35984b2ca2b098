import { existsSync, readFileSync } from 'node:fs';

/** The version of this installation. The built program lies one folder below package.json, its source two. */
export function version(): string {
  const places = ['../package.json', '../../package.json'].map((path) => new URL(path, import.meta.url));
  const found = places.find((place) => existsSync(place));
  if (found === undefined) throw new Error('package.json is missing: the installation is incomplete.');
  return (JSON.parse(readFileSync(found, 'utf8')) as { version: string }).version;
}
