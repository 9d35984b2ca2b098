import { NO_BUNDLE, requirePage } from '../report.ts';
import type { Page } from './http.ts';

/** The same page as `verify.html`, told to ask its own server. Nothing else is allowed to it besides. */
export function livePage(): Page {
  const page = requirePage();
  const [, policy = ''] = /http-equiv="Content-Security-Policy" content="([^"]+)"/.exec(page) ?? [];
  const wider = policy.replace("default-src 'none'", "default-src 'none'; connect-src 'self'");
  const html = page
    .replace(policy, wider)
    .replace(NO_BUNDLE, NO_BUNDLE.replace('null', '{"live":true}'))
    .replace('<title>Colibri report</title>', '<title>Colibri</title>');
  return { html, policy: wider };
}
