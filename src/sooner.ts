/** What is at hand, or a promise of what must be fetched: to wait for what is at hand takes as long as to decide what to do with it. */
export type Sooner<T> = T | Promise<T>;

/** Goes on with a value, at once where it is at hand. */
export function after<T, U>(value: Sooner<T>, work: (value: T) => Sooner<U>): Sooner<U> {
  return value instanceof Promise ? value.then(work) : work(value);
}
