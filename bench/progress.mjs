const began = performance.now();

/** Says on stderr how far the benchmark is. */
export function progress(text) {
  const seconds = Math.round((performance.now() - began) / 1000);
  console.error(`${String(seconds).padStart(5)} s  ${text}`);
}
