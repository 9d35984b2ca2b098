import { inclusionProof, nodesInMemory } from '../../src/integrity/proofs.ts';
import { leafHash } from '../../src/integrity/tree.ts';
import { GENESIS } from '../../src/log/row.ts';
import {
  CERTIFICATE_KIND,
  CERTIFICATE_VERSION,
  formatCertificate,
} from '../../src/verify/sources/certificate.ts';
import type { ForgedLog, JsonObject } from './forge.ts';

/** A certificate of an audit row that somebody put together by hand, with whatever heads they like. */
export async function makeCertificate(
  log: ForgedLog,
  positions: readonly number[],
  heads: readonly { readonly key: string; readonly checkpoint: string }[],
): Promise<string> {
  const stored = log.stored();
  const nodes = nodesInMemory(stored.map(({ content_hash }) => leafHash(content_hash)));
  const rows = await Promise.all(
    positions.map(async (position) => ({
      position,
      previous: stored[position - 2]?.chain_hash ?? GENESIS,
      proof: await inclusionProof(nodes, position - 1, stored.length),
      text: stored[position - 1]?.text ?? '',
    })),
  );
  const payloads = positions.flatMap((position) => log.payloadAt(position) ?? []);
  const digests = payloads.flatMap(({ body }) => Object.values(JSON.parse(body) as JsonObject));
  const texts = digests.flatMap((digest) => {
    const kept = log.texts.get(String(digest));
    return kept === undefined ? [] : [{ digest: String(digest), ...kept }];
  });
  return formatCertificate({
    ...{
      kind: CERTIFICATE_KIND,
      version: CERTIFICATE_VERSION,
      subject: `#${positions[0]}`,
      origin: log.origin,
    },
    ...{ heads, rows, payloads, texts, state: [], seals: {}, anchors: {} },
  });
}
