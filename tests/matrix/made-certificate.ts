import { inclusionProof, nodesInMemory } from '../../src/integrity/proofs.ts';
import { leafHash } from '../../src/integrity/tree.ts';
import { formatCertificate } from '../../src/verify/sources/certificate.ts';
import { payloadLine, proofLine, textLine } from '../../src/verify/sources/forms.ts';
import type { ForgedLog, JsonObject } from './forge.ts';

/** A certificate of an audit row that somebody put together by hand, with whatever heads they like. */
export async function makeCertificate(
  log: ForgedLog,
  positions: readonly number[],
  heads: readonly { readonly key: string; readonly checkpoint: string }[],
): Promise<string> {
  const stored = log.stored();
  const nodes = nodesInMemory(stored.map(({ content_hash }) => leafHash(content_hash)));
  const proofs = await Promise.all(
    positions.map(async (position) =>
      proofLine({ position, proof: await inclusionProof(nodes, position - 1, stored.length) }),
    ),
  );
  const payloads = positions.flatMap((position) => log.payloadAt(position) ?? []);
  const digests = payloads.flatMap(({ body }) => Object.values(JSON.parse(body) as JsonObject));
  const ids = log.textIds();
  const texts = digests.map(String).flatMap((digest) => {
    const kept = log.texts.get(digest);
    return kept === undefined ? [] : [{ id: ids.get(digest) ?? 0, digest, ...kept }];
  });
  const sizeOf = (note: string) => Number(note.split('\n')[1]);
  const [newest = ''] = heads.map(({ checkpoint }) => checkpoint).sort((a, b) => sizeOf(b) - sizeOf(a));
  return formatCertificate({
    subject: `#${positions[0]}`,
    origin: log.origin,
    files: {
      'log.jsonl': positions.map((position) => stored[position - 1]?.text ?? ''),
      'proofs.jsonl': proofs,
      'payloads.jsonl': payloads.map(payloadLine),
      'texts.jsonl': texts.sort((a, b) => a.id - b.id).map(textLine),
      'state.jsonl': [],
      checkpoint: newest.split('\n').slice(0, -1),
      keys: heads.map(({ key }) => key),
      ...Object.fromEntries(
        heads.map(({ key, checkpoint }) => [
          `heads/${key.split('+')[1]}`,
          checkpoint.split('\n').slice(0, -1),
        ]),
      ),
    },
  });
}
