import type { TestOwner } from '../../support/deck.ts'

/** What some work costs, and how that grows with what there is more and more of. */
export type Part = {
  title: string,
  unit: Unit,
  /** so many of them are there, and nothing has been measured yet */
  open: (n: number, owner: TestOwner) => Job | Promise<Job>
}
type Unit = 'worker' | 'app' | 'event' | 'host'
export type Job = {
  /** what is measured */
  run: () => unknown,
  /** how often it has done it by then; default: once */
  times?: number,
  /** of one time, once it has run */
  bytes?: () => number
}
/** of one time, for all units together */
export type Cost = { n: number, cpuMs: number, bytes: number | null }

/** The least CPU time of several runs: that of the one which others have disturbed least. */
export async function measure ({ open }: Part, n: number, { rounds }: { rounds: number }): Promise<Cost> {
  const ends: (() => unknown)[] = []
  try {
    const job = await open(n, { after: (end: () => unknown) => {
      ends.unshift(end)
    } })
    // V8 has to know the code.
    await job.run()
    const took = []
    for (let round = 0; round < rounds; round++) took.push(await cpuMsOf(job.run) / (job.times ?? 1))
    return { n, cpuMs: Math.min(...took), bytes: job.bytes?.() ?? null }
  } finally {
    for (const end of ends) await end()
  }
}

async function cpuMsOf (run: () => unknown) {
  const before = process.cpuUsage()
  await run()
  const { user, system } = process.cpuUsage(before)
  return (user + system) / 1000
}

/** @returns how the cost of each has grown: 1 where it is the same, less where much is there anyhow */
export function growthOf (few: Cost, many: Cost, figure: 'cpuMs' | 'bytes'): number {
  return Number(many[figure]) / many.n / (Number(few[figure]) / few.n)
}

/** @returns what each one more costs */
export function eachMore (few: Cost, many: Cost, figure: 'cpuMs' | 'bytes'): number {
  return (Number(many[figure]) - Number(few[figure])) / (many.n - few.n)
}
