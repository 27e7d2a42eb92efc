// What manages many apps costs, in one host, as a deck each, and by PM2, one after the other in each round: `npm run
// bench:host`
//   [one|small|twelve …] [--ways host,decks,pm2] [--rounds 1] [--seconds 30] [--settle 20] [--json FILE]
// MB: PSS of all that serve nobody. CPU: of these, while nobody asks the apps anything.
import { spawn } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { setTimeout as wait } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { FIXTURES, type TestOwner } from '../../support/deck.ts'
import { tempFolder } from '../../support/folder.ts'
import { createOwner } from '../../support/owner.ts'
import { freePort } from '../../support/ports.ts'
import { cpuMs, pssMegabytes } from '../../support/process-figures.ts'
import { lacksSmallDisk, smallDisk } from '../../support/small-disk.ts'
import { untilAnswer } from '../compare/client.ts'
import { installPeers } from '../compare/install.ts'
import { tableOf } from '../compare/results.ts'
import { combine } from '../compare/summary.ts'
import { median } from '../figures.ts'
import { placeApps, SETS, smallApps, type Apps } from './apps.ts'
import { WAYS, type Running } from './ways.ts'
import type { Cell } from '../compare/rows.ts'

const FIGURES = Object.freeze(['managers', 'MB', 'MB, page open', 'CPU %, page open', 'CPU %',
  'CPU %, flood and crash loop', 'ms to add one: command', 'the same: API', 'its own boot, ms', 'ms to the next master',
  'for all apps'])
const ADDS = 5
const PAGE_SETTLES_MS = 5000
const ANSWERS_WITHIN_MS = 60_000

const { values: options, positionals } = parseArgs({ allowPositionals: true,
  options: { ways: { type: 'string', default: Object.keys(WAYS).join() }, rounds: { type: 'string', default: '1' },
    seconds: { type: 'string', default: '30' }, settle: { type: 'string', default: '20' }, json: { type: 'string' } } })
const seconds = Number(options.seconds)
const settleMs = 1000 * Number(options.settle)
const chosen = positionals.length > 0 ? positionals : Object.keys(SETS)
if (options.ways.includes('pm2')) await installPeers()

/** by set and way */
const cells: Record<string, Record<string, Cell[]>> = Object.fromEntries(chosen.map((set) => [set, {}]))
for (let round = 0; round < Number(options.rounds); round++) {
  for (const set of chosen) {
    const ways = options.ways.split(',')
    for (const way of round % 2 ? ways.toReversed() : ways) {
      const cell = await measure(set, way).catch((error) => ({
        managers: `failed: ${String(error.message).slice(0, 100)}`
      }))
      cells[set][way] = [...cells[set][way] ?? [], cell]
      console.log(`${SETS[set].title}, ${WAYS[way].title}: ${JSON.stringify(cell)}`)
    }
  }
}
const results = Object.fromEntries(
  Object.entries(cells).map((
    [set, byWay]
  ) => [set, { title: SETS[set].title, figures: [...FIGURES],
    peers: Object.fromEntries(Object.entries(byWay).map(([way, rounds]) => [WAYS[way].title, combine(rounds)])) }]
  )
)
for (const result of Object.values(results)) console.log(`\n${result.title}\n\n${tableOf(result)}`)
for (const [title, figures] of Object.entries(differences())) console.log(`${title}: ${figures}`)
if (options.json)
  writeFileSync(options.json,
    `${
      JSON.stringify({ date: new Date().toISOString(), node: process.version, rounds: options.rounds, seconds,
        results }, null, 2)
    }\n`)

async function measure (set: string, way: string): Promise<Cell> {
  const owner = createOwner()
  try {
    const full = fullFolder(owner)
    const apps = await placeApps(SETS[set].apps({ full: full.folder, place: tempFolder() }))
    const late = await placeApps(smallApps(2 * ADDS, 'late'))
    full.fill()
    const running = await WAYS[way].start(owner, apps, late)
    for (const { port } of Object.values(apps).filter(({ isServing }) => isServing)) await untilAnswer(Number(port))
    return await measureRunning(running, { apps, late })
  } finally {
    await owner.end()
  }
}

async function measureRunning (running: Running, { apps, late }: Record<'apps' | 'late', Apps>): Promise<Cell> {
  const cell = {} as Cell
  await wait(settleMs)
  const restless = Object.keys(apps).filter((name) => apps[name].isRestless)
  if (restless.length > 0) {
    cell['CPU %, flood and crash loop'] = await cpuPercent(running)
    await running.stop(restless)
    await wait(settleMs)
  }
  cell['CPU %'] = await cpuPercent(running)
  cell.managers = running.managers().length
  cell.MB = pssMegabytes(running.managers())
  if (running.open) {
    const close = await running.open()
    await wait(PAGE_SETTLES_MS)
    cell['CPU %, page open'] = await cpuPercent(running)
    cell['MB, page open'] = pssMegabytes(running.managers())
    close()
  }
  if (running.lose) {
    const { firstMs, allMs } = await running.lose()
    Object.assign(cell, { 'ms to the next master': firstMs, 'for all apps': allMs })
    await wait(settleMs)
  }
  return Object.assign(cell, await measureAdding(running, late))
}

/** @returns of a core */
async function cpuPercent (running: Running): Promise<number> {
  const pids = running.managers()
  const before = cpuMs(pids)
  await wait(1000 * seconds)
  return (cpuMs(pids) - before) / seconds / 10
}

/** Each beside the same program without anybody around it. */
async function measureAdding (running: Running, late: Apps): Promise<Cell> {
  const times: Record<'alone' | 'command' | 'api', number[]> = { alone: [], command: [], api: [] }
  const names = Object.keys(late)
  for (let count = 0; count < ADDS; count++) {
    times.alone.push(await bootAlone())
    times.command.push(await timeToAnswer(Number(late[names[2 * count]].port), () => running.add(names[2 * count])))
    const { addByApi } = running
    if (addByApi)
      times.api.push(await timeToAnswer(Number(late[names[2 * count + 1]].port), () => addByApi(names[2 * count + 1])))
  }
  return { 'ms to add one: command': median(times.command),
    ...(times.api.length > 0 && { 'the same: API': median(times.api) }), 'its own boot, ms': median(times.alone) }
}

async function bootAlone () {
  const owner = createOwner()
  const port = await freePort()
  const ms = await timeToAnswer(port, async () => {
    owner.spawned(
      spawn(process.execPath, [`${FIXTURES}listens-on-port.js`], {
        env: { ...process.env, NODE_EXTRA_CA_CERTS: undefined, PORT: String(port) },
        stdio: 'ignore'
      })
    )
  })
  await owner.end()
  return ms
}

async function timeToAnswer (port: number, act: () => Promise<unknown>) {
  const begunAt = performance.now()
  const late = wait(ANSWERS_WITHIN_MS, undefined, { ref: false }).then(() => {
    throw new Error(`no answer at port ${port} within ${ANSWERS_WITHIN_MS} ms`)
  })
  const [ms] = await Promise.race([Promise.all([untilAnswer(port).then(() => performance.now() - begunAt), act()]),
    late])
  return ms
}

/** Where no disk can be mounted, it is a folder of which nothing can be made. */
function fullFolder (owner: TestOwner) {
  return lacksSmallDisk ? { folder: '/proc/nothing', fill () {} } : smallDisk(owner)
}

/** What each app beyond the first costs, and each added one beyond its own boot. */
function differences (): Record<string, string> {
  const { one, small } = results
  const lines = {} as Record<string, string>
  for (const way of options.ways.split(',')) {
    const { title } = WAYS[way]
    const [first, all] = [one?.peers[title], small?.peers[title]]
    const each = (figure: string) => ((Number(all?.[figure]) - Number(first?.[figure])) / 11).toFixed(2)
    if (first && all)
      lines[`${title}, each app beyond the first`] = `${each('MB')} MB, ${
        each('CPU %')
      } % of a core; with twelve the next master takes ${
        (Number(all['ms to the next master']) / Number(first['ms to the next master'])).toFixed(2)
      } × as long`
    for (const { title: set, peers } of Object.values(results)) {
      const beyond = (figure: string) =>
        (Number(peers[title][figure]) - Number(peers[title]['its own boot, ms'])).toFixed(0)
      lines[`${title}, ${set}, one more beyond its own boot`] = `${beyond('ms to add one: command')} ms by command, ${
        beyond('the same: API')
      } ms by API`
    }
  }
  return lines
}
