import { capitalised } from '../../public/format.ts'
import lines from './node-lines.json' with { type: 'json' }

// The lines of Node: how long each gets fixes, and which release has closed the last known holes. build/node-lines.ts
// renews the table.

/**
 * The releases of a major version. `lts`, `end`: days on which long-term support begins, and all support ends;
 * `security`: the newest release that closes holes, of a line that had fixes when the table was made.
 */
type Line = { lts?: string, end: string, security?: { version: string, date: string } }
/** `asOf`: the day up to which it knows all releases */
export type Table = { asOf: string, lines: Readonly<Record<string, Line>> }
type NodeInUse = {
  /** runs on it, such as `the app` */
  who: string,
  version: string,
  /** whether it may run on another version */
  fits?: (version: number[]) => boolean
}
/**
 * `ended`: it gets no more fixes; `open`: it lacks fixes that are out; `unknown`: the table cannot say; `take`: what to
 * install, a line or a version.
 */
export type Verdict = { state: 'ended' | 'open' | 'unknown' | 'ok', who: string[], title: string, why: string,
  take: string | null }

const DAY_MS = 24 * 60 * 60 * 1000
/** Security releases come every one to three months. */
const FRESH_MS = 120 * DAY_MS
const NODE_LINES: Table = lines
const CLUSTERDECK = 'clusterdeck'

/** @returns the version on which the app runs; null: another program runs it */
export function appNodeVersion (
  { release, master }: { release: { runtime?: string, node?: { version: string } }, master: { nodeVersion: string } }
): string | null {
  return release.node ? `v${release.node.version}` : release.runtime === 'other' ? null : master.nodeVersion
}

/** `own`: version on which clusterdeck runs; `fits`: the app */
export function nodesInUse (own: string, app: string | null, fits?: NodeInUse['fits']): NodeInUse[] {
  return [{ who: CLUSTERDECK, version: own }, ...app === null ? [] : [{ who: 'the app', version: app, fits }]]
}

/** `now`: wall clock, ms. Returns one for each version. */
export function judgeNodes (inUse: readonly NodeInUse[],
  { now, table = NODE_LINES }: { now: number, table?: Table }): Verdict[]
{
  const versions = [...new Set(inUse.map(({ version }) => version))]
  return versions.map((version) => judge(version, inUse.filter((each) => each.version === version), { now, table }))
}

export function lineToTake (now: number, fits: NodeInUse['fits'] = () => true, { lines }: Table = NODE_LINES):
  | string
  | null
{
  return Object.keys(lines).findLast((line) => {
    const { lts, end } = lines[line]
    return lts !== undefined && Date.parse(lts) <= now && now < Date.parse(end) && fits([Number(line), 99, 0])
  }) ?? null
}

function judge (version: string, inUse: NodeInUse[], { now, table }: { now: number, table: Table }): Verdict {
  const { asOf, lines } = table
  const numbers = numbersOf(version)
  const major = String(numbers[0])
  const line = Object.hasOwn(lines, major) ? lines[major] : null
  const who = inUse.map((each) => each.who)
  const runs = capitalised(
    `${who.join(' and ')} ${who.length === 1 ? 'runs' : 'run'} on Node ${numbers.join('.') || version.slice(0, 40)}`,
    CLUSTERDECK
  )
  if (line === null) {
    const isNewer = numbers[0] > Number(Object.keys(lines).at(-1))
    return { state: 'unknown', who,
      title: `${runs}, which is ${isNewer ? 'newer than' : 'not in'} the table of Node releases of ${asOf}`, why: '',
      take: null }
  }
  if (Date.parse(line.end) <= now) {
    const take = lineToTake(now, (each) => inUse.every(({ fits }) => fits?.(each) ?? true), table)
    return { state: 'ended', who, title: `${runs}, which has had no fixes since ${line.end}`,
      why: `Holes that are found in it stay open.${take ? ` Node ${take} gets fixes until ${lines[take].end}.` : ''}`,
      take }
  }
  if (line.security && isOlder(numbers, numbersOf(line.security.version))) {
    const { version: newest, date } = line.security
    return { state: 'open', who, title: `${runs}, which lacks the security fixes of ${newest} (${date})`,
      why: 'Holes that they close are known to everybody.', take: newest }
  }
  if (now - Date.parse(asOf) > FRESH_MS)
    return { state: 'unknown', who, title: `${runs}, and whether it lacks security fixes is not known`,
      why: `The table of Node releases is of ${asOf}. A newer version of clusterdeck has a newer table.`, take: null }
  return { state: 'ok', who,
    title: `${runs}, which gets fixes until ${line.end} and has the security fixes known on ${asOf}`, why: '',
    take: null }
}

/** @returns empty: it is none */
export function numbersOf (version: string): number[] {
  return /^v?(\d+)\.(\d+)\.(\d+)/.exec(version)?.slice(1).map(Number) ?? []
}

function isOlder (one: number[], other: number[]) {
  const at = one.findIndex((each, index) => each !== other[index])
  return at !== -1 && one[at] < other[at]
}
