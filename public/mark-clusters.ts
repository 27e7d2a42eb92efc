/** Joins marks that are too close to each other into one with a count. */
export type Mark = { lane: 'deploys' | 'exits', tone: string, label: string, count: number, firstS: number,
  lastS: number, lastId: number }
/** `kinds`: the most frequent first; `spans`: where in it something happened */
export type Cluster = { lane: Mark['lane'], tone: Mark['tone'], firstS: number, lastS: number, count: number,
  lastId: number, kinds: { label: string, count: number }[], spans: { firstS: number, lastS: number }[] }

/** Events that are marked as deploys. */
export const DEPLOY_TYPES = Object.freeze(['rollout.started', 'rollout.succeeded', 'rollout.failed',
  'rollout.rolled-back'])

/** `causes`: of exits @returns as the API has them in its filter by type */
export function exitTypes (causes: readonly string[]): string[] {
  return causes.map((cause) => `worker.exited:${cause}`)
}

/** A cluster has the worst tone of its marks, which comes last here. */
const TONES = Object.freeze(['ok', 'info', 'bad'])

/**
 * Deploys stay apart from crashes, as a crash loop would hide them. The cells are fixed in time, so that a cluster does
 * not fall apart while the chart moves. `marks`: ascending; `cellS`: how much of the time is too near.
 * @returns ascending, exits before deploys: so they are drawn
 */
export function clustersOf (marks: readonly Mark[], cellS: number): Cluster[] {
  const cells: Map<string, Mark[]> = new Map()
  for (const mark of marks) {
    const key = `${mark.lane} ${Math.floor(mark.firstS / cellS)}`
    const cell = cells.get(key)
    if (cell) cell.push(mark)
    else cells.set(key, [mark])
  }
  const clusters = Array.from(cells.values(), toCluster)
  return [...clusters.filter(({ lane }) => lane === 'exits'), ...clusters.filter(({ lane }) => lane === 'deploys')]
}

function toCluster (marks: readonly Mark[]): Cluster {
  const kinds: Map<string, number> = new Map()
  for (const { label, count } of marks) kinds.set(label, (kinds.get(label) ?? 0) + count)
  return { lane: marks[0].lane, tone: TONES[Math.max(...marks.map(({ tone }) => TONES.indexOf(tone)))],
    firstS: Math.min(...marks.map(({ firstS }) => firstS)), lastS: Math.max(...marks.map(({ lastS }) => lastS)),
    count: marks.reduce((sum, { count }) => sum + count, 0), lastId: Math.max(...marks.map(({ lastId }) => lastId)),
    kinds: Array.from(kinds, ([label, count]) => ({ label, count })).sort((a, b) => b.count - a.count),
    spans: marks.map(({ firstS, lastS }) => ({ firstS, lastS })) }
}

/** @returns `37 × crash, 3 × killed`, `deploy succeeded` */
export function clusterText ({ kinds }: Cluster): string {
  return kinds.map(({ label, count }) => count === 1 ? label : `${count.toLocaleString('en-US')} × ${label}`).join(', ')
}
