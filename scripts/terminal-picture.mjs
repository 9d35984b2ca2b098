// What a command prints on a terminal, as a picture. Needs script(1) and a Chromium; COLIBRI_CHROMIUM names one that is elsewhere.
import { spawnSync } from 'node:child_process';
import { chromium } from 'playwright-core';

export const CHROMIUM = {
  executablePath: process.env.COLIBRI_CHROMIUM ?? '/usr/bin/chromium',
  args: ['--no-sandbox', '--disable-gpu'],
};

/** What a terminal makes of the codes that Colibri prints. */
const STYLES = {
  ...{ 1: 'font-weight:bold', 2: 'color:#8b949e', 31: 'color:#ff7b72', 32: 'color:#56d364' },
  ...{ 33: 'color:#e3b341', 36: 'color:#76e3ea' },
};

/** Runs a command line on a terminal that is so many columns wide. */
export function runOnTerminal(command, { columns, cwd, env = process.env }) {
  const { status, stdout } = spawnSync('script', ['-qec', `stty cols ${columns}; ${command}`, '/dev/null'], {
    ...{ cwd, encoding: 'utf8' },
    env: { ...env, TERM: 'xterm', NO_COLOR: '' },
  });
  if (status !== 0) throw new Error(`${command} ended with ${status}:\n${stdout}`);
  // A bar that shows progress is gone when the work is done.
  return stdout
    .split('\n')
    .map((line) => line.split('\r\u001b[K').at(-1))
    .join('\n')
    .replaceAll('\r', '')
    .trimEnd();
}

/** Photographs what was printed, below the command that a person would type. */
export async function photograph(command, printed, path) {
  const browser = await chromium.launch(CHROMIUM);
  const page = await browser.newPage({ viewport: { width: 1400, height: 600 } });
  await page.setContent(`<style>
    body { margin: 0; background: #0d1117 }
    pre { display: inline-block; margin: 0; padding: 16px 20px; background: #0d1117; color: #e6edf3;
          font: 13px/1.35 "DejaVu Sans Mono", monospace }
  </style><pre>$ ${command}\n${toHtml(printed)}</pre>`);
  await page.locator('pre').screenshot({ path });
  await browser.close();
}

function toHtml(text) {
  return text
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .split('\u001b[0m')
    .map((piece) => {
      const [before, painted] = piece.split('\u001b[');
      if (painted === undefined) return inCells(before);
      const [code, ...styled] = painted.split('m');
      return `${inCells(before)}<span style="${STYLES[code] ?? ''}">${inCells(styled.join('m'))}</span>`;
    })
    .join('');
}

const CHARACTERS = new Intl.Segmenter('en', { granularity: 'grapheme' });
const WIDE = /[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\uff00-\uff60]|\p{Emoji_Presentation}/u;

/** On a terminal a wide character takes two columns, whatever the font says. */
function inCells(text) {
  const cell = (char) =>
    `<span style="display:inline-block;width:2ch;height:1.35em;overflow:hidden;vertical-align:bottom">${char}</span>`;
  const chars = Array.from(CHARACTERS.segment(text), ({ segment }) => segment);
  return chars.map((char) => (WIDE.test(char) ? cell(char) : char)).join('');
}
