import { reportPage } from '../report.ts';
import type { Page } from './http.ts';

const NO_BUNDLE = '<script type="application/json" id="bundle">null</script>';
const LIVE = '<script type="application/json" id="bundle">{"live":true}</script>';

/** The same page as `verify.html`, told to ask its own server. Nothing else is allowed to it besides. */
export function livePage(): Page {
  const page = reportPage();
  const [, policy] = /http-equiv="Content-Security-Policy" content="([^"]+)"/.exec(page ?? '') ?? [];
  if (page === undefined || policy === undefined || !page.includes(NO_BUNDLE))
    throw new Error('verify.html is missing: the installation is incomplete. Reinstall Colibri.');
  const wider = policy.replace("default-src 'none'", "default-src 'none'; connect-src 'self'");
  const html = page
    .replace(policy, wider)
    .replace(NO_BUNDLE, LIVE)
    .replace('<title>Colibri report</title>', '<title>Colibri</title>');
  return { html, policy: wider };
}
