/**
 * Which of several apps comes before which, by what each says that it depends on.
 * @typedef {ReadonlyMap<string, { dependsOn: readonly string[] }>} Apps by name
 */

/**
 * @param {Apps} apps
 * @returns {string[] | null} the names along a circle, the first one again at its end; null: there is none
 */
export function circleOf (apps) {
  const done = new Set()
  for (const name of apps.keys()) {
    const circle = follow(name, [])
    if (circle) return circle
  }
  return null

  /** @param {string} name @param {string[]} way @returns {string[] | null} */
  function follow (name, way) {
    if (way.includes(name)) return [...way.slice(way.indexOf(name)), name]
    if (done.has(name)) return null
    for (const each of apps.get(name)?.dependsOn ?? []) {
      const circle = follow(each, [...way, name])
      if (circle) return circle
    }
    done.add(name)
    return null
  }
}

/**
 * Some apps with all that they depend on, each behind those; otherwise as they are listed.
 * @param {Apps} apps without a circle @param {Iterable<string>} names
 * @returns {string[]}
 */
export function startOrder (apps, names) {
  /** @type {Set<string>} */
  const order = new Set()
  const wanted = new Set(names)
  for (const name of apps.keys()) if (wanted.has(name)) add(name)
  return [...order]

  /** @param {string} name */
  function add (name) {
    if (order.has(name)) return
    for (const each of apps.get(name)?.dependsOn ?? []) add(each)
    order.add(name)
  }
}

/**
 * Does something with each of some apps, once it is done with those of them that depend on it; otherwise at the same time.
 * @template T
 * @param {Apps} apps without a circle @param {readonly string[]} names @param {(name: string) => Promise<T>} work which does not fail
 * @returns {Promise<T[]>} as the names
 */
export async function inStopOrder (apps, names, work) {
  /** @type {Map<string, Promise<T>>} */
  const begun = new Map()
  // Over those too that are not meant.
  const needs = new Map(names.map((name) => [name, new Set(startOrder(apps, [name]))]))
  return await Promise.all(names.map(begin))

  /** @param {string} name @returns {Promise<T>} */
  function begin (name) {
    if (!begun.has(name)) begun.set(name, after(name))
    return /** @type {Promise<T>} */ (begun.get(name))
  }

  /** @param {string} name */
  async function after (name) {
    await Promise.all(names.filter((each) => each !== name && needs.get(each)?.has(name)).map(begin))
    return await work(name)
  }
}
