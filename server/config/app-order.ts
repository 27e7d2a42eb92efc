// The order of several apps follows from what each depends on.

/** By name. */
export type Apps = ReadonlyMap<string, { dependsOn: readonly string[] }>

/** @returns the names along a circle, the first one again at its end; null: there is none */
export function circleOf (apps: Apps): string[] | null {
  const done = new Set()
  for (const name of apps.keys()) {
    const circle = followDependencies(name, [])
    if (circle) return circle
  }
  return null

  function followDependencies (name: string, way: string[]): string[] | null {
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
 * Lists some apps with all that they depend on. Each comes after those; apart from that the order stays. `apps`:
 * without a circle.
 */
export function startOrder (apps: Apps, names: Iterable<string>): string[] {
  const order: Set<string> = new Set()
  const wanted = new Set(names)
  for (const name of apps.keys()) if (wanted.has(name)) addApp(name)
  return [...order]

  function addApp (name: string) {
    if (order.has(name)) return
    for (const each of apps.get(name)?.dependsOn ?? []) addApp(each)
    order.add(name)
  }
}

/**
 * Does something with each of some apps, once it is done with those of them that depend on it. All others run at the
 * same time. `apps`: without a circle; `work`: which does not fail.
 * @returns as the names
 */
export async function inStopOrder<T> (apps: Apps, names: readonly string[],
  work: (name: string) => Promise<T>): Promise<T[]>
{
  const begun: Map<string, Promise<T>> = new Map()
  // One may need another by way of an app that is not among them.
  const needs = new Map(names.map((name) => [name, new Set(startOrder(apps, [name]))]))
  return await Promise.all(names.map(beginApp))

  function beginApp (name: string): Promise<T> {
    const running = begun.get(name) ?? runAfter(name)
    begun.set(name, running)
    return running
  }

  async function runAfter (name: string) {
    await Promise.all(names.filter((each) => each !== name && needs.get(each)?.has(name)).map(beginApp))
    return await work(name)
  }
}
