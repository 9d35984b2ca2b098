import { leafHash, nodeHash } from '../../../integrity/tree.ts';
import type { Leaf } from '../../records.ts';
import { h, svg } from './dom.ts';
import { number } from './parts.ts';

/** A node of a tree as RFC 6962 shapes it, over the leaves from `start` up to but not including `end`. */
export interface TreeNode {
  readonly start: number;
  readonly end: number;
  readonly hash: string;
  /** Levels above the leaves. */
  readonly height: number;
  readonly left?: TreeNode;
  readonly right?: TreeNode;
}

/** The tree over these records in their order. There is at least one. */
export function treeOf(hashes: readonly string[], start = 0, end = hashes.length): TreeNode {
  const count = end - start;
  if (count === 1) return { start, end, height: 0, hash: leafHash(hashes[start] ?? '') };
  let split = 1;
  while (split * 2 < count) split *= 2;
  const left = treeOf(hashes, start, start + split);
  const right = treeOf(hashes, start + split, end);
  return { start, end, height: left.height + 1, left, right, hash: nodeHash(left.hash, right.hash) };
}

/** The nodes next to the path of a leaf to the root, the leaf's own sibling first. */
export function proofOf(root: TreeNode, index: number): TreeNode[] {
  const proof: TreeNode[] = [];
  for (let node = root; node.left !== undefined && node.right !== undefined; ) {
    const isLeft = index < node.left.end;
    proof.unshift(isLeft ? node.right : node.left);
    node = isLeft ? node.left : node.right;
  }
  return proof;
}

const SLOT = 60;
const LEVEL = 58;
const NODE_WIDTH = 53;
const NODE_HEIGHT = 26;
const MARGIN = 16;
const DIGITS = 6;

/**
 * Draws the part of a tree over some of its leaves. Each subtree outside them is drawn as one node, so that the picture of
 * a session of ten thousand records is as small as that of one of ten.
 */
export function treePicture(
  root: TreeNode,
  leaves: readonly Leaf[],
  window: { readonly from: number; readonly to: number },
  choose: (index: number) => void,
) {
  /** What is drawn of each node: itself and the edge to its parent. */
  const drawn = new Map<TreeNode, SVGElement[]>();
  const buttons = new Map<number, SVGElement>();
  const [edgeLayer, nodeLayer] = [svg('g'), svg('g')];
  const bottom = MARGIN + root.height * LEVEL;
  let slots = 0;

  const yOf = ({ height }: TreeNode) => bottom - height * LEVEL;

  /** Draws a node with what is below it, and answers where it is. */
  function place(node: TreeNode): number {
    const { left, right } = node;
    const isOutside = node.end <= window.from || node.start >= window.to;
    if (left === undefined || right === undefined || isOutside) {
      slots += 1;
      return draw(node, MARGIN + (slots - 1) * SLOT + NODE_WIDTH / 2, isOutside);
    }
    const places = [left, right].map((below) => [below, place(below)] as const);
    const x = places.reduce((sum, [, at]) => sum + at / 2, 0);
    for (const [below, at] of places) {
      const d = `M${x} ${yOf(node)} V${yOf(node) + LEVEL / 2} H${at} V${yOf(below)}`;
      const edge = svg('path.edge', { fill: 'none', d });
      drawn.get(below)?.push(edge);
      edgeLayer.append(edge);
    }
    return draw(node, x, false);
  }

  function draw(node: TreeNode, x: number, isOutside: boolean): number {
    const y = yOf(node);
    const isLeaf = node.height === 0;
    const isFolded = isOutside && !isLeaf;
    const caption = (text: string, at: number, down: number) =>
      svg('text.caption', { x: at, y: y + down }, text);
    const box = (moved: number) =>
      svg('rect', {
        ...{ x: x - NODE_WIDTH / 2 + moved, y: y - NODE_HEIGHT / 2 + moved },
        ...{ width: NODE_WIDTH, height: NODE_HEIGHT, rx: isLeaf ? 6 : 13 },
      });
    const classes = `${isLeaf ? '.leaf' : ''}${isFolded ? '.folded' : ''}${node === root ? '.root' : ''}`;
    const isButton = isLeaf && !isOutside;
    const label = `${node.hash.slice(0, DIGITS)} ${leaves[node.start]?.record ?? ''}, Leaf ${node.start + 1}: show its proof`;
    const button = { role: 'button', tabindex: 0, 'aria-label': label, click: () => choose(node.start) };
    const group = svg(`g.node${classes}`, isButton && button, [
      // What a button shows must be in its name, and nothing besides.
      !isButton && svg('title', node.hash),
      isFolded && box(4),
      box(0),
      svg('text', { x, y: y + 4 }, `${node.hash.slice(0, DIGITS)} `),
      isFolded && caption(`${number(node.end - node.start)} leaves`, x, NODE_HEIGHT + 6),
      isLeaf && caption(leaves[node.start]?.record ?? '', x, NODE_HEIGHT + 4),
      node === root && caption('root', x + NODE_WIDTH / 2 + 22, 4),
    ]);
    drawn.set(node, [group]);
    nodeLayer.append(group);
    if (!isButton) return x;
    buttons.set(node.start, group);
    group.addEventListener('keydown', (event) => {
      const move = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      if (event.key === 'Enter' || event.key === ' ') choose(node.start);
      else if (move !== undefined) buttons.get(node.start + move)?.focus();
      else return;
      event.preventDefault();
    });
    return x;
  }

  place(root);
  const width = MARGIN * 2 + slots * SLOT + 30;
  const height = bottom + NODE_HEIGHT + 26;
  const view = { viewBox: `0 0 ${width} ${height}`, width, height };
  const picture = svg('svg', view, edgeLayer, nodeLayer);
  const label = 'Merkle tree of the session, scrolls sideways';
  const element = h('div.scroll.tree-picture', { tabindex: 0, role: 'group', 'aria-label': label }, picture);

  return {
    element,
    /** Lights the path of one leaf. */
    light(index: number): void {
      const siblings = new Set(proofOf(root, index));
      for (const [node, parts] of drawn)
        for (const part of parts) {
          part.classList.toggle('path', node.start <= index && index < node.end);
          part.classList.toggle('sibling', siblings.has(node));
        }
      for (const [leaf, button] of buttons) button.setAttribute('aria-pressed', String(leaf === index));
    },
  };
}
