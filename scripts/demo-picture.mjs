// Photographs the real output of the demo for the README: node scripts/demo-picture.mjs
// Needs script(1) for a terminal and a Chromium; COLIBRI_CHROMIUM names one that is elsewhere.
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { chromium } from 'playwright-core';

const COLUMNS = 92;
const ROOT = fileURLToPath(new URL('..', import.meta.url));
const PICTURE = `${ROOT}docs/images/demo.png`;

/** What a terminal makes of the codes that Colibri prints. */
const STYLES = { 1: 'font-weight:bold', 2: 'color:#8b949e', 31: 'color:#ff7b72', 32: 'color:#56d364' };

const printed = runOnTerminal('node dist/cli.js demo');
await photograph(`<pre>$ npx -y colibri-mcp demo\n${toHtml(printed)}</pre>`);

function runOnTerminal(command) {
  const { status, stdout } = spawnSync('script', ['-qec', `stty cols ${COLUMNS}; ${command}`, '/dev/null'], {
    cwd: ROOT,
    encoding: 'utf8',
    env: { ...process.env, TERM: 'xterm', NO_COLOR: '' },
  });
  if (status !== 0) throw new Error(`the demo ended with ${status}:\n${stdout}`);
  return stdout.replaceAll('\r', '').trimEnd();
}

function toHtml(text) {
  return text
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .split('\u001b[0m')
    .map((piece) => {
      const [before, painted] = piece.split('\u001b[');
      if (painted === undefined) return before;
      const [code, ...styled] = painted.split('m');
      return `${before}<span style="${STYLES[code] ?? ''}">${styled.join('m')}</span>`;
    })
    .join('');
}

async function photograph(html) {
  const browser = await chromium.launch({
    executablePath: process.env.COLIBRI_CHROMIUM ?? '/usr/bin/chromium',
    args: ['--no-sandbox', '--disable-gpu'],
  });
  const page = await browser.newPage({ viewport: { width: 900, height: 600 } });
  await page.setContent(`<style>
    body { margin: 0; background: #0d1117 }
    pre { display: inline-block; margin: 0; padding: 16px 20px; background: #0d1117; color: #e6edf3;
          font: 13px/1.35 "DejaVu Sans Mono", monospace }
  </style>${html}`);
  await page.locator('pre').screenshot({ path: PICTURE });
  await browser.close();
}
