import assert from 'node:assert/strict'
import { appendFileSync, utimesSync } from 'node:fs'
import path from 'node:path'
import { test } from 'node:test'
import { startAdmin, type Admin } from '../support/admin.ts'
import { aCrash } from '../support/crash-record.ts'
import type { Role } from '../../server/api/roles.ts'
import type { NewEvent } from '../../server/events/stream.ts'

async function visit (admin: Admin, path: string): Promise<{ status: number, html: string }> {
  const { status, text } = await admin.visit(path)
  return { status, html: text }
}

/** `end`: how it ends, if it does */
function live ({ deck, clock }: Admin, worker: Partial<NewEvent> & { worker: number }, end?: Partial<NewEvent>) {
  const at = () => new Date(clock.now()).toISOString()
  const about = { slot: 1, pid: 4000 + worker.worker, release: 'r1', ...worker }
  deck.events.publish({ at: at(), type: 'worker.forked', ...about } as NewEvent)
  clock.advance(1000)
  if (end) deck.events.publish({ at: at(), type: 'worker.exited', uptimeMs: 1000, ...about, ...end } as NewEvent)
  clock.advance(1000)
}

test('a worker that has gone: how it ended, its crash, who was before it and who got its slot', async (t) => {
  const admin = await startAdmin(t)
  live(admin, { worker: 11 }, { cause: 'deploy', code: 0, message: 'worker 11 (slot 1) exited with code 0' })
  live(admin, { worker: 12 }, { cause: 'crash', code: 1,
    message: 'worker 12 (slot 1) exited with code 1: <b>TypeError</b>\u202e', detail: { crash: 5, crashGroup: 3 } })
  live(admin, { worker: 20, slot: 2 })
  live(admin, { worker: 21 }, { cause: 'killed', code: null, signal: 'SIGKILL' })
  const { status, html } = await visit(admin, '/workers/12')
  assert.equal(status, 200)
  assert.match(html, /Ended/)
  assert.match(html, /Exited with code 1: &lt;b&gt;TypeError&lt;\/b&gt;&lt;U\+202E&gt;/)
  assert.match(html, /href="\/crashes\/3\?crash=5">See the crash/)
  assert.match(html, /<a [^>]*href="\/workers\/21\?at=[^"]+">Worker 21<\/a> replaced it after 3\.0 s/)
  assert.match(html, /href="\/workers\/11\?at=[^"]+">Worker 11</)
  assert.doesNotMatch(html, />Worker 20<|id="worker-lives"[^]*>Worker 21</, 'those that came later are not its story')
  assert.doesNotMatch(html, /data-dialog|id="charts"|Record CPU profile/)
})

test('the next worker of the slot, which began before this one ended, took over when it was ready, and has ended too', async (t) => {
  const admin = await startAdmin(t)
  const tell = (type: string, worker: number, second: number, more: Partial<NewEvent> = {}) =>
    admin.deck.events.publish(
      { type, worker, slot: 1, pid: 4000 + worker, release: 'r1',
        at: new Date(admin.clock.now() + 1000 * second).toISOString(), ...more } as NewEvent
    )
  tell('worker.forked', 11, 0)
  tell('worker.forked', 12, 5)
  tell('worker.exited', 11, 6, { cause: 'unresponsive', signal: 'SIGKILL', uptimeMs: 6000 })
  tell('worker.ready', 12, 8)
  tell('worker.exited', 12, 60, { cause: 'crash', code: 1, uptimeMs: 55_000, message: 'worker 12 exited with code 1' })
  const { html } = await visit(admin, '/workers/11')
  assert.match(html, />Worker 12<\/a> replaced it after 2\.0 s/)
  assert.doesNotMatch(html, />alive</)
})

test('the workers of a slot are in the order in which they ended', async (t) => {
  const admin = await startAdmin(t)
  const tell = (type: string, worker: number, second: number) =>
    admin.deck.events.publish(
      { type, worker, slot: 1, pid: 4000 + worker, release: 'r1', cause: 'deploy',
        at: new Date(admin.clock.now() + 1000 * second).toISOString() } as NewEvent
    )
  tell('worker.forked', 11, 0)
  tell('worker.forked', 12, 5)
  tell('worker.exited', 12, 20)
  tell('worker.exited', 11, 60)
  const { html } = await visit(admin, '/workers/11')
  assert.deepEqual(Array.from(html.matchAll(/class="life-head"><a [^>]*>Worker (\d+)/g), ([, id]) => id), ['11', '12'])
})

test('how a worker ended is said once, without its name, and in red while its crash is open', async (t) => {
  const admin = await startAdmin(t)
  admin.history.crashes.record('v1:sum', aCrash({ slot: 1, worker: 12 }), { culprit: null })
  live(admin, { worker: 12 }, { cause: 'crash', code: 1, rollout: 4, actor: 'ada',
    message: 'worker 12 (slot 1) exited with code 1: boom', detail: { crash: 1, crashGroup: 1 } })
  live(admin, { worker: 13 })
  admin.deck.events.publish({ type: 'rollout.step', worker: 13, slot: 1, message: 'slot 1: done' })
  const { html } = await visit(admin, '/workers/12')
  assert.doesNotMatch((await visit(admin, '/workers/13')).html, /Slot 1: done/, 'a step is of the rollout')
  assert.equal(html.split(/exited with code 1/i).length, 2)
  assert.match(html,
    /class="notice outcome tone-bad"[^]*<bdi>Exited with code 1: boom<[^]* · lived for 1\.0 s · by <bdi>ada<[^]*href="\/rollouts\/4">See the rollout</)
  assert.match(html, /<bdi>Forked \(pid 4012\)</, 'its events need not name it either')
  assert.doesNotMatch(html, /class="[^"]*panel[^"]*" id="worker-output"/, 'no card for lines that there are not')
  admin.deck.crashes.act(1, 'resolve', 'ada')
  assert.match((await visit(admin, '/workers/12')).html, /class="notice outcome tone-idle"/)
})

test('a worker that has ended shows its last 200 lines and the place where it threw, and plainly that it wrote none or that none are kept', async (t) => {
  const admin = await startAdmin(t)
  const { deck, history } = admin
  const start = Date.parse('2026-01-01T10:00:00.000Z')
  const at = (second: number) => new Date(start + 1000 * second).toISOString()
  const write = (text: string, second: number) => {
    const file = path.join(deck.logs.folder, 'slot-1.stdout.log')
    appendFileSync(file, text)
    utimesSync(file, start / 1000 + second, start / 1000 + second)
    deck.logs.open({ worker: 0, slot: 1 }).close()
  }
  const tell = (type: string, worker: number, second: number, more = {}) =>
    deck.events.publish({ type, worker, slot: 1, pid: 4000 + worker, at: at(second), ...more } as NewEvent)
  history.crashes.record('v1:sum', aCrash({ at: at(20), slot: 1, worker: 12 }), { culprit: 'sum (src/shop.js)' })

  tell('worker.forked', 11, 0)
  tell('worker.exited', 11, 5)
  write('of the one before\n', 6)
  tell('worker.forked', 12, 10)
  write(Array.from({ length: 250 }, (_, index) => `line ${index + 1} <b>\n`).join(''), 20)
  tell('worker.exited', 12, 20, { cause: 'crash', code: 1, uptimeMs: 10_000, detail: { crash: 1, crashGroup: 1 } })
  tell('worker.forked', 13, 20.05)
  write('of the next one\n', 21)
  tell('worker.exited', 13, 22)
  tell('worker.forked', 14, 23)
  tell('worker.exited', 14, 25)
  for (const worker of [15, 16, 17]) tell('worker.forked', worker, 26)
  write('of one of three\n', 27)
  for (const worker of [15, 16, 17]) tell('worker.exited', worker, 28)

  const { html } = await visit(admin, '/workers/12')
  assert.match(html, /Its last 200 lines/)
  assert.deepEqual(Array.from(html.matchAll(/line (\d+) &lt;b&gt;/g), ([, number]) => Number(number)),
    Array.from({ length: 200 }, (_, index) => index + 51))
  assert.doesNotMatch(html, /of the one before|of the next one/)
  assert.match(html,
    /href="\/crashes\/1\?crash=1">Thrown in <span class="mono"><bdi>sum<\/bdi><\/span> at <span class="mono"><bdi>src\/shop\.js:12:34</)
  assert.match(html, /Worker 13<\/a> replaced it at once/)
  assert.match((await visit(admin, '/workers/13')).html, /Its only line[^]*of the next one/)
  assert.match((await visit(admin, '/workers/15')).html,
    /Workers 1[67] and 1[67] wrote to the log of slot 1 at the same/)
  assert.match((await visit(admin, '/workers/14')).html, /It wrote nothing to stdout and stderr/)
  assert.match((await visit(admin, '/workers/11')).html, /Its output is no longer kept, or it wrote none/)
})

test('who was never followed is told so, and whose end nobody has seen too', async (t) => {
  const admin = await startAdmin(t)
  const { workers } = admin.deck.snapshot()
  live(admin, { worker: 11 }, { cause: 'scale-down', code: 0 })
  live(admin, { worker: 12, slot: 2 })
  admin.deck.set({ workers: workers.filter(({ slot }) => slot !== 1) })
  assert.match((await visit(admin, '/workers/11')).html, /Slot 1 has no next worker yet/)
  assert.match((await visit(admin, '/workers/12')).html, /How it ended was not recorded/)
})

test('a new worker that failed in a rollout: the one that it was to replace has the slot', async (t) => {
  const admin = await startAdmin(t)
  live(admin, { worker: 11 }, { cause: 'boot-failure', code: 1 })
  assert.match((await visit(admin, '/workers/11')).html, /href="\/workers\/1">Worker 1<\/a> has slot 1 now/)
  assert.doesNotMatch((await visit(admin, '/workers/1')).html, /Before it:/, 'it came after the one that lives')
  const at = new Date(admin.clock.now()).toISOString()
  admin.deck.set({
    workers: admin.deck.snapshot().workers.map((worker) => worker.id === 1 ? { ...worker, startedAt: at } : worker)
  })
  assert.match((await visit(admin, '/workers/1')).html, /Before it: <a [^>]*href="\/workers\/11\?at=/,
    'and here before it')
})

test('an id that a later cluster has used again means who lives, or who lived at a time', async (t) => {
  const admin = await startAdmin(t)
  live(admin, { worker: 1, pid: 3001 }, { cause: 'shutdown', code: 0, message: 'the first one' })
  live(admin, { worker: 1, pid: 3002 }, { cause: 'crash', code: 7, message: 'the second one' })
  live(admin, { worker: 1, pid: 4001 })
  const { html } = await visit(admin, '/workers/1')
  assert.match(html, /pid <span class="mono">4001<[^]*Record CPU profile/)
  const [second, first] = Array.from(html.matchAll(/href="(\/workers\/1\?at=[^"]+)">Worker 1</g), ([, url]) => url)
  assert.match((await visit(admin, first)).html,
    /pid <span class="mono">3001<[^]*<strong><bdi>The first one<[^]*<a [^>]*>Worker 1<\/a> replaced it after 1\.0 s/)
  assert.match((await visit(admin, second)).html, /pid <span class="mono">3002<[^]*<strong><bdi>The second one</)
})

test('an event leads to the worker that it tells of, and an unknown one is not found', async (t) => {
  const admin = await startAdmin(t)
  live(admin, { worker: 11 }, { cause: 'crash', code: 1 })
  const { html } = await visit(admin, '/history/2')
  const [, url] = /href="([^"]+)">See the worker/.exec(html) as RegExpExecArray
  assert.match((await visit(admin, url)).html, /<title>Worker 11/)
  for (const [path, status] of [['/workers/99', 404], ['/workers/x', 404], ['/workers/11?at=yesterday', 400]])
    assert.equal((await visit(admin, String(path))).status, status, String(path))
})

test('a history that cannot be read takes no page of a live worker down', async (t) => {
  const admin = await startAdmin(t)
  admin.history.page = () => {
    throw new Error('disk I/O error')
  }
  const { status, html } = await visit(admin, '/workers/1')
  assert.equal(status, 200)
  assert.match(html, /Worker 1 <span class="badge tone-ok">[^]*history database cannot be read[^]*Record CPU profile/)
})

test('a worker of another program than Node shows what is known of it, also while the release that runs is a Node app', async (t) => {
  const admin = await startAdmin(t)
  const { snapshot } = admin.deck
  admin.deck.snapshot = () => {
    const status = snapshot()
    return { ...status,
      workers: status.workers.map((worker) => ({ ...worker,
        runtime: worker.id === 2 ? 'other' as const : 'node' as const,
        vitals: { ...worker.vitals, heapUsedBytes: 2 ** 20 } as typeof worker.vitals })
      ) }
  }
  const program = await visit(admin, '/workers/2')
  assert.match(program.html, /data-figure="processes"[^]*id="chart-descriptors"/)
  assert.match(program.html,
    /Measured from outside, with all processes that it has started\. Requests and latency are not known\./)
  assert.doesNotMatch(program.html,
    /Look inside|dialog-heap-snapshot|id="chart-requests"|data-figure="(requestsPerSecond|heapUsedBytes)"/)
  const node = await visit(admin, '/workers/1')
  assert.match(node.html, /data-figure="requests5xxPerSecond"[^]*heap 1\.0 MB[^]*Look inside[^]*id="chart-requests"/)
  assert.doesNotMatch(node.html, /data-figure="processes"|id="chart-descriptors"|Measured from outside/)
})

test('an old worker tells what it keeps, and that the requests of its sessions still reach it; its connections can be ended until they are being closed', async (t) => {
  const admin = await startAdmin(t)
  const holds = { requests: 0, transfers: 0, webSockets: 3, eventStreams: 1, connections: 0, sessions: 9 }
  const keep = (forMs: number) => {
    const keptUntil = new Date(admin.clock.now() + forMs).toISOString()
    admin.deck.set({
      workers: admin.deck.snapshot().workers.map((worker) =>
        worker.id === 1 ? { ...worker, state: 'draining', keptUntil, holds } : worker
      )
    })
  }
  keep(7_200_000)
  const { html } = await visit(admin, '/workers/1')
  assert.match(html,
    /takes nothing new but the requests of its sessions, and keeps <strong>3 WebSockets, 1 event stream and 9 sessions<\/strong>\. What is still open <time[^>]*>in 2 h[^<]*<\/time> is closed then/)
  assert.match(html, /data-dialog="dialog-end-connections"/)
  keep(0)
  const closing = (await visit(admin, '/workers/1')).html
  assert.match(closing, /These are being closed now/)
  assert.doesNotMatch(closing, /data-dialog="dialog-end-connections"/)
})

test('looking is for everybody, looking inside for operators, files for admins', async (t) => {
  const admin = await startAdmin(t)
  admin.deck.diagnostics.items.unshift({ ...admin.deck.diagnostics.items[0], id: 2, kind: 'cpu-profile',
    durationMs: 5000 })
  const seenBy = async (role: Role) =>
    (await admin.visit('/workers/1?profile=2', (await admin.tokenFor(role, role)).headers)).text
  const viewer = await seenBy('viewer')
  assert.doesNotMatch(viewer, /data-dialog|<form hx|id="functions"|\/file"/)
  const operator = await seenBy('operator')
  assert.match(operator, /id="worker-kill"[^]*Record CPU profile[^]*Only an admin can download the file/)
  assert.match(operator, /id="functions"[^]*CPU profile 2/)
  assert.doesNotMatch(operator, /\/file"/)
  const administrator = await seenBy('admin')
  assert.doesNotMatch(administrator.split('id="worker-head"')[1].split('<dialog')[0], /button[^"]* primary/)
  assert.match(administrator, /href="\/api\/v1\/diagnostics\/2\/file" download/)
})
