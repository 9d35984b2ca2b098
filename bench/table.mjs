/** The figures of a run, for the eyes of whoever started it. */
export function printTable(measured) {
  const rows = Object.values(measured).flatMap((section) => section.rows);
  if (rows.length > 0) console.table(rows.map(line));
  const servers = measured.rivals?.servers ?? [];
  if (servers.length > 0) console.table(servers.map(rivalLine));
}

function line({ what, unit, reference, reference_is, p50, p99, value, sense, limit, verdict }) {
  return {
    what,
    reference: reference === undefined ? '' : `${short(reference)} ${reference_is}`,
    p50: `${short(p50)} ${unit}`,
    p99: p99 === undefined ? '' : short(p99),
    judged: `${short(value)} ${sense} ${short(limit)}`,
    verdict,
  };
}

function rivalLine({
  name,
  version,
  failed,
  started,
  list,
  write,
  together,
  growth,
  memory,
  killed,
  two,
  ...rest
}) {
  const lost = (sum) => sum && `${sum.lost}/${sum.acknowledged}`;
  const last = growth?.points.at(-1);
  return {
    server: `${name} ${version}`,
    start: short(started?.initialize),
    tokens: list?.tokens,
    write: short(write?.p50),
    'in flight/s': short(together?.per_second),
    'p50 when grown': last && `${short(last.p50)} at ${last.items}`,
    memory: short(memory?.after),
    'lost in flight': lost(together),
    'kill -9': lost(killed),
    'kill -9 busy': lost(rest.killed_in_burst),
    'two processes': lost(two),
    syncs: rest.syncs_per_write,
    failed: failed && JSON.stringify(failed),
  };
}

/** Three digits that matter, and thousands apart. */
export function short(value) {
  if (value === undefined || value === null) return '';
  const digits = Math.abs(value) >= 100 ? 0 : Math.abs(value) >= 10 ? 1 : 2;
  return value.toLocaleString('en', { maximumFractionDigits: digits, minimumFractionDigits: 0 });
}
