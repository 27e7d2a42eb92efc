/**
 * The order of several apps follows from what each depends on.
 * @typedef {ReadonlyMap<string, { dependsOn: readonly string[] }>} Apps by name
 */

/**
 * @param {Apps} apps
 * @returns {string[] | null} the names along a circle, the first one again at its end; null: there is none
 */
export function circleOf (apps) {
  const done = new Set()
  for (const name of apps.keys()) {
    const circle = followDependencies(name, [])
    if (circle) return circle
  }
  return null

  /** @param {string} name @param {string[]} way @returns {string[] | null} */
  function followDependencies (name, way) {
    if (way.includes(name)) return [...way.slice(way.indexOf(name)), name]
    if (done.has(name)) return null
    for (const each of apps.get(name)?.dependsOn ?? []) {
      const circle = followDependencies(each, [...way, name])
      if (circle) return circle
    }
    done.add(name)
    return null
  }
}

/**
 * Lists some apps with all that they depend on. Each comes after those; apart from that the order stays.
 * @param {Apps} apps without a circle @param {Iterable<string>} names
 * @returns {string[]}
 */
export function startOrder (apps, names) {
  /** @type {Set<string>} */
  const order = new Set()
  const wanted = new Set(names)
  for (const name of apps.keys()) if (wanted.has(name)) addApp(name)
  return [...order]

  /** @param {string} name */
  function addApp (name) {
    if (order.has(name)) return
    for (const each of apps.get(name)?.dependsOn ?? []) addApp(each)
    order.add(name)
  }
}

/**
 * Does something with each of some apps, once it is done with those of them that depend on it. All others run at the same time.
 * @template T
 * @param {Apps} apps without a circle @param {readonly string[]} names @param {(name: string) => Promise<T>} work which does not fail
 * @returns {Promise<T[]>} as the names
 */
export async function inStopOrder (apps, names, work) {
  /** @type {Map<string, Promise<T>>} */
  const begun = new Map()
  // One may need another by way of an app that is not among them.
  const needs = new Map(names.map((name) => [name, new Set(startOrder(apps, [name]))]))
  return await Promise.all(names.map(beginApp))

  /** @param {string} name @returns {Promise<T>} */
  function beginApp (name) {
    const running = begun.get(name) ?? runAfter(name)
    begun.set(name, running)
    return running
  }

  /** @param {string} name */
  async function runAfter (name) {
    await Promise.all(names.filter((each) => each !== name && needs.get(each)?.has(name)).map(beginApp))
    return await work(name)
  }
}
