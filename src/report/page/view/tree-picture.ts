/// <reference lib="dom" />
import type { Leaf } from '../protocol.ts';
import { h, number, svg } from './dom.ts';
import { type ProofStep, proofSteps, type TreeNode } from './tree-shape.ts';

const SLOT = 60;
const LEVEL = 58;
const NODE_WIDTH = 53;
const NODE_HEIGHT = 26;
const MARGIN = 16;
const DIGITS = 6;

interface Placed {
  readonly x: number;
  readonly y: number;
  readonly node: TreeNode;
}

export interface TreePicture {
  readonly element: HTMLElement;
  /** Lights the way of one leaf. */
  light(index: number): void;
}

/**
 * Draws the part of a tree that stands over some of its leaves. What lies beside them is drawn as one node each, so that
 * a session of ten thousand records has a picture as small as one of ten.
 */
export function treePicture(
  root: TreeNode,
  leaves: readonly Leaf[],
  window: { readonly from: number; readonly to: number },
  choose: (index: number) => void,
): TreePicture {
  const nodes = new Map<TreeNode, SVGElement>();
  const edges = new Map<TreeNode, SVGElement>();
  const buttons = new Map<number, SVGElement>();
  const [edgeLayer, nodeLayer] = [svg('g'), svg('g')];
  const bottom = MARGIN + root.height * LEVEL;
  let slots = 0;

  function place(node: TreeNode): Placed {
    const y = bottom - node.height * LEVEL;
    const isOutside = node.end <= window.from || node.start >= window.to;
    if (node.left === undefined || node.right === undefined || isOutside) {
      const x = MARGIN + slots * SLOT + NODE_WIDTH / 2;
      slots += 1;
      return draw({ node, x, y }, isOutside && node.height > 0);
    }
    const [left, right] = [place(node.left), place(node.right)];
    const placed = { node, x: (left.x + right.x) / 2, y };
    connect(placed, left);
    connect(placed, right);
    return draw(placed, false);
  }

  function connect(above: Placed, below: Placed): void {
    const middle = above.y + LEVEL / 2;
    const way = `M${above.x} ${above.y} V${middle} H${below.x} V${below.y}`;
    const edge = svg('path', { d: way, class: 'edge' });
    edges.set(below.node, edge);
    edgeLayer.append(edge);
  }

  function draw(placed: Placed, isFolded: boolean): Placed {
    const { node, x, y } = placed;
    const isLeaf = node.height === 0;
    const box = svg('rect', {
      x: x - NODE_WIDTH / 2,
      y: y - NODE_HEIGHT / 2,
      width: NODE_WIDTH,
      height: NODE_HEIGHT,
      rx: isLeaf ? 6 : 13,
    });
    const label = svg('text', { x, y: y + 4 }, node.hash.slice(0, DIGITS));
    const group = svg(
      'g',
      { class: `node${isLeaf ? ' leaf' : ''}${isFolded ? ' folded' : ''}${node === root ? ' root' : ''}` },
      svg('title', {}, node.hash),
    );
    if (isFolded)
      group.append(
        svg('rect', {
          class: 'behind',
          x: x - NODE_WIDTH / 2 + 4,
          y: y - NODE_HEIGHT / 2 + 4,
          width: NODE_WIDTH,
          height: NODE_HEIGHT,
          rx: 13,
        }),
      );
    group.append(box, label);
    if (isFolded)
      group.append(
        svg(
          'text',
          { class: 'caption', x, y: y + NODE_HEIGHT + 6 },
          `${number(node.end - node.start)} leaves`,
        ),
      );
    if (node === root)
      group.append(svg('text', { class: 'caption', x: x + NODE_WIDTH / 2 + 22, y: y + 4 }, 'root'));
    if (isLeaf && !isFolded) makeButton(group, placed);
    nodes.set(node, group);
    nodeLayer.append(group);
    return placed;
  }

  function makeButton(group: SVGElement, { node, x, y }: Placed): void {
    const leaf = leaves[node.start];
    group.append(svg('text', { class: 'caption', x, y: y + NODE_HEIGHT + 4 }, leaf?.record ?? ''));
    if (node.end <= window.from || node.start >= window.to) return;
    group.setAttribute('role', 'button');
    group.setAttribute('tabindex', '0');
    group.setAttribute('aria-label', `Leaf ${node.start + 1}, ${leaf?.record ?? ''}: show its proof`);
    group.setAttribute('aria-pressed', 'false');
    group.addEventListener('click', () => choose(node.start));
    group.addEventListener('keydown', (event) => {
      const move = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      if (event.key === 'Enter' || event.key === ' ') choose(node.start);
      else if (move !== undefined) buttons.get(node.start + move)?.focus();
      else return;
      event.preventDefault();
    });
    buttons.set(node.start, group);
  }

  place(root);
  const width = MARGIN * 2 + slots * SLOT + 30;
  const height = bottom + NODE_HEIGHT + 26;
  const picture = svg(
    'svg',
    {
      viewBox: `0 0 ${width} ${height}`,
      width,
      height,
      role: 'group',
      'aria-label': 'Merkle tree of the session',
    },
    edgeLayer,
    nodeLayer,
  );
  const element = h('div', {
    class: 'tree-picture',
    tabindex: 0,
    role: 'group',
    'aria-label': 'Picture of the tree, scrolls sideways',
  });
  element.append(picture);

  return {
    element,
    light(index) {
      for (const part of [...nodes.values(), ...edges.values()]) part.classList.remove('path', 'sibling');
      for (const [leaf, button] of buttons) button.setAttribute('aria-pressed', String(leaf === index));
      const steps = proofSteps(root, index);
      lightSteps(steps);
      const leaf = [...nodes.keys()].find((node) => node.height === 0 && node.start === index);
      if (leaf === undefined) return;
      nodes.get(leaf)?.classList.add('path');
      edges.get(leaf)?.classList.add('path');
    },
  };

  function lightSteps(steps: readonly ProofStep[]): void {
    for (const { sibling, parent } of steps) {
      nodes.get(sibling)?.classList.add('sibling');
      edges.get(sibling)?.classList.add('sibling');
      nodes.get(parent)?.classList.add('path');
      edges.get(parent)?.classList.add('path');
    }
  }
}
