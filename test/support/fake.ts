/** What a test gives of a `T`: any of its fields, in each depth; functions may answer with parts as well. */
export type Parts<T> = T extends (...args: infer A) => infer R ? (...args: A) => Parts<R>
  : T extends Promise<infer V> ? Promise<Parts<V>>
  : T extends readonly (infer V)[] ? readonly Parts<V>[]
  : T extends Map<infer K, infer V> ? Map<K, Parts<V>>
  : T extends object ? { [K in keyof T]?: Parts<T[K]> | undefined }
  : T

/**
 * The parts that a test needs, in place of the whole that the tested code asks for: their names and types are
 * checked, and what is left out is missing while the test runs.
 *
 * @throws {TypeError} In the tested code, where it needs a part that the test has not given.
 */
export const fake = <T>(parts: Parts<NoInfer<T>>): T => parts as T
