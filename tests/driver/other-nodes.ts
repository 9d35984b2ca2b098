import { MAJORS, nodeOf } from '../../scripts/nodes.mjs';

/** Each Node that can be had, this one included. */
export function everyNode(): { readonly nodes: ReadonlyMap<number, string>; readonly missing: string } {
  const found = MAJORS.map((major) => [major, nodeOf(major)] as const);
  const nodes = new Map(
    found.flatMap(([major, path]) => (path === undefined ? [] : [[major, path] as const])),
  );
  const absent = MAJORS.filter((major) => !nodes.has(major));
  return { nodes, missing: absent.length === 0 ? '' : ` (without Node ${absent.join(', ')}: not to be had)` };
}
