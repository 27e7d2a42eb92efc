/** Freezes data that is handed to many readers. `value`: plain data. */
export function deepFreeze<T> (value: T): Readonly<T> {
  if (typeof value === 'object' && value !== null) Object.values(value).forEach(deepFreeze)
  return Object.freeze(value)
}
