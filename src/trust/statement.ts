import { canonicalJson } from '../integrity/canonical-json.ts';
import { sha256Hex } from '../integrity/digest.ts';
import { type NoteSigner, openNote, signNote, type VerifierKey } from '../integrity/signed-note.ts';

// Which machine wrote a row of a team's log, no row can say: whoever has the database can write any. So what the owner of a
// key decides for all machines is signed by itself, and counts for as much as the key that signed it.

/** What vouching for a key or adopting a log says. */
export interface Stated {
  readonly tool: string;
  /** Arguments of the call, or what its result repeats of them. */
  readonly args: Readonly<Record<string, unknown>>;
}

/** The members that are signed, where they are present. */
const SIGNED = ['key', 'lost', 'rows'] as const;

function textOf(origin: string, { tool, args }: Stated): string {
  const said = SIGNED.flatMap((name) => (args[name] === undefined ? [] : [[name, args[name]] as const]));
  return `${origin}\n${tool}\n${canonicalJson(Object.fromEntries(said))}\n`;
}

/** The signature that goes with a statement: that of a signed note, without its text. */
export function signStatement(signer: NoteSigner, stated: Stated): string {
  return signNote(textOf(signer.name, stated), signer).trimEnd().split(' ').at(-1) ?? '';
}

/** Whether one of these keys signed a statement. */
export function isStatedBy(keys: Iterable<VerifierKey>, origin: string | undefined, stated: Stated): boolean {
  const { signed } = stated.args;
  // One signature and nothing beside it: otherwise a copy with another line would be another adoption.
  if (origin === undefined || typeof signed !== 'string' || /\s/.test(signed)) return false;
  try {
    openNote(`${textOf(origin, stated)}\n\u2014 ${origin} ${signed}\n`, [...keys]);
    return true;
  } catch {
    // A stranger wrote it: it may be anything.
    return false;
  }
}

/** What tells one adoption from any other: a copy of it in another row is the same. */
export function adoptionId({ args }: Pick<Stated, 'args'>): string {
  return sha256Hex(String(args.signed));
}

/** Adds to the keys that are vouched for those that one of them vouches for, and so on. */
export function followVouches(
  vouched: Map<string, VerifierKey>,
  origin: string | undefined,
  acts: readonly Stated[],
  read: (text: string) => VerifierKey | undefined,
): void {
  for (let before = -1; before !== vouched.size; ) {
    before = vouched.size;
    for (const act of acts) {
      const text = String(act.args.key);
      if (act.tool !== 'owner_trust' || vouched.has(text)) continue;
      const key = isStatedBy(vouched.values(), origin, act) ? read(text) : undefined;
      if (key !== undefined) vouched.set(text, key);
    }
  }
}
