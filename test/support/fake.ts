/**
 * What a test gives of a `T`: any of its fields, in each depth; functions may answer with parts or nothing as well, and
 * take only what they are called with. What a timer is, only its clock knows.
 */
export type Parts<T> = T extends (...args: infer A) => infer R ? { call(...args: A): Parts<R> | void }['call']
  : T extends Promise<infer V> ? Promise<Parts<V> | void>
  : T extends readonly (infer V)[] ? readonly Parts<V>[]
  : T extends Map<infer K, infer V> ? Map<K, Parts<V>>
  : T extends object ? { [K in keyof T]?: (K extends keyof Timers ? Timers[K] : Parts<T[K]>) | undefined }
  : T
type Timers = { setTimeout: (work: () => void, ms: number) => unknown, clearTimeout: (timer: never) => void,
  setInterval: Timers['setTimeout'], clearInterval: Timers['clearTimeout'] }

/**
 * The parts that a test needs, in place of the whole that the tested code asks for: their names and types are
 * checked, and what is left out is missing while the test runs.
 *
 * @throws {TypeError} In the tested code, where it needs a part that the test has not given.
 */
export const fake = <T>(parts: NoInfer<Parts<T>>): T => parts as T
