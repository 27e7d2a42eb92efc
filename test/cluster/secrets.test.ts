import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { describe, test } from 'node:test'
import { attempt } from '../../server/errors.ts'
import { CLI, FIXTURES, runCli, startDeck, startReady } from '../support/deck.ts'
import { startDeckHere, startReadyHere } from '../support/deck-here.ts'
import { tempFolder } from '../support/folder.ts'
import { startHost } from '../support/host.ts'
import { startCollector } from '../support/otlp-receiver.ts'
import { rareTest } from '../support/rare.ts'
import { until } from '../support/until.ts'

const CANARY = 'canary-Q7m2Zx'
const APP = path.join(FIXTURES, 'has-secrets.js')

type Deck = Awaited<ReturnType<typeof startDeckHere>> | Awaited<ReturnType<typeof startDeck>>

/** A store of secrets beside an app: a program that prints them, and notes that it was asked. */
function openStore (config: Record<string, unknown> = {}) {
  const folder = tempFolder()
  const at = (name: string) => path.join(folder, name)
  const store = {
    at,
    folder,
    flags: ['--config', at('clusterdeck.config.json')],
    /** `script`: of the program */
    become: (script: string) => writeFileSync(at('program.sh'), `echo asked >> "$0.asked"\n${script}\n`),
    hold (secrets: Record<string, string>) {
      writeFileSync(at('secrets.json'), JSON.stringify(secrets))
      store.become(`cat ${at('secrets.json')}`)
    },
    asked: () => readFileSync(at('program.sh.asked'), 'utf8').split('\n').length - 1,
    read: (name: string) => readFileSync(at(name), 'utf8')
  }
  writeFileSync(at('clusterdeck.config.json'),
    JSON.stringify({ secrets: { from: 'command', command: ['sh', at('program.sh')], timeoutMs: 5000 },
      drain: { idleGraceMs: 0 }, ...config }))
  store.hold({ CANARY })
  return store
}

type Told = { pid: number, release: string, value: string | null }

/** `name`: of a variable */
async function ask (deck: Deck, name: string = 'CANARY') {
  const [address] = (await deck.status()).app.addresses
  return await (await fetch(new URL(`/get/${name}`, address), { headers: { connection: 'close' } })).json() as Told
}

/** @returns of the workers that serve, by slot */
async function pidsOf (deck: Deck) {
  return (await deck.status()).workers.flatMap(({ state, pid }) => state === 'ready' ? pid ?? [] : [])
}

/** @returns files that hold it */
function filesWithCanary (folder: string, canary: string = CANARY): string[] {
  const files = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile())
  return files.map(({ parentPath, name }) => path.join(parentPath, name)).filter((file) =>
    readFileSync(file).includes(canary)
  )
}

/** @returns processes that have it there */
function processesWith (what: 'environ' | 'cmdline', canary: string): number[] {
  return readdirSync('/proc').filter((name) => /^\d+$/.test(name)).map(Number).filter((pid) => {
    // ENOENT, ESRCH: it has ended. EACCES: it is another user's.
    return attempt(() => readFileSync(`/proc/${pid}/${what}`).includes(canary), false)
  })
}

/** Asks for all that can be read, with each name and number that there is. Returns texts, by their paths. */
async function readEverything (deck: Deck, names: string[]): Promise<{ answered: Map<string, string> }> {
  const answered: Map<string, string> = new Map()
  const { body: document } = await deck.api('/openapi.json')
  const pages = ['/', '/deploys', '/workers/{id}', '/rollouts/{id}', '/compare?from=r1&to=r2', '/releases/{id}',
    '/releases/{id}/rollback', '/releases/{id}/compare', '/history', '/history/{id}', '/crashes', '/crashes/{id}',
    '/logs', '/access', '/settings', '/alerts', '/jobs', '/jobs/runs/{id}', '/palette', '/decks', '/dialogs',
    '/metrics']
  const calls = Object.entries(document.paths).filter(([, item]) => item.get).map(([where]) => where)
  for (const template of [...calls, ...pages]) {
    for (const where of /\{\w+\}/.test(template)
      ? names.map((name) => template.replace(/\{\w+\}/, name).replace(/\{\w+\}/g, 'stdout'))
      : [template])
    {
      const response = await fetch(deck.adminUrl + where, {
        headers: { authorization: `Bearer ${deck.token}`, connection: 'close' },
        redirect: 'manual'
      })
      if (String(response.headers.get('content-type')).startsWith('text/event-stream')) await response.body?.cancel()
      else answered.set(where,
          `${response.status} ${[...response.headers].join('\n')}\n${
            Buffer.from(await response.arrayBuffer()).toString('latin1')
          }`)
    }
  }
  return { answered }
}

describe('secrets', { concurrency: 2 }, () => {
  test('are in workers, hooks, jobs and runs of their release, and nowhere else', async (t) => {
    // Other tests have theirs in the same list of processes.
    const canary = `${CANARY}-of-this-test`
    const folder = tempFolder()
    const note = (name: string) => `printf %s "$CANARY" > ${path.join(folder, name)}`
    const store = openStore({ hooks: { beforeDeploy: { command: ['sh', '-c', note('hook')] } },
      jobs: { nightly: { command: note('job') } }, env: { CANARY: 'of the configuration' } })
    store.hold({ CANARY: canary })
    const dataDir = tempFolder()
    const deck = await startReady(t, APP, { flags: store.flags, dataDir })
    assert.equal((await ask(deck)).value, canary)
    assert.equal((await deck.rollout('deploy')).state, 'succeeded')
    const { body: run } = await deck.post('/jobs/nightly/runs')
    await deck.untilEvent('job.succeeded', { detail: { run: run.id } })
    const cli = await runCli(['run', '--', 'sh', '-c', note('run')], { env: { CLUSTERDECK_DATA_DIR: dataDir } })
    assert.deepEqual([cli.code, cli.stderr], [0, ''])
    const console = spawn(process.execPath, [CLI, 'run', '-i', '--', 'sh', '-c', note('console')], {
      env: { ...process.env, CLUSTERDECK_DATA_DIR: dataDir },
      stdio: 'inherit'
    })
    assert.equal((await once(console, 'exit'))[0], 0)
    for (const name of ['hook', 'job', 'run', 'console'])
      assert.equal(readFileSync(path.join(folder, name), 'utf8'), canary, name)
    const { workers: [{ id: worker }] } = await deck.until({ ready: 2 })
    const { body: report } = await deck.post(`/workers/${worker}/diagnostics`, { kind: 'report' })
    await deck.untilEvent('diagnostics.finished', { detail: { id: report.id } })

    assert.deepEqual(filesWithCanary(dataDir, canary), [])
    assert.deepEqual(processesWith('cmdline', canary), [])
    assert.deepEqual(processesWith('environ', canary).sort(), (await pidsOf(deck)).sort())
    const { answered } = await readEverything(deck, ['1', '2', 'r1', 'r2', 'nightly', String(worker), String(run.id),
      String(report.id)])
    const worked = [...answered.values()].filter((text) => text.startsWith('200'))
    t.diagnostic(`${worked.length} of ${answered.size}`)
    assert.ok(worked.length > 60, `${worked.length} of ${answered.size} were answered`)
    assert.deepEqual([...answered].filter(([, text]) => text.includes(canary)).map(([where]) => where), [])
    assert.ok(!(deck.output.stdout + deck.output.stderr).includes(canary))
    // That it would have been found there.
    assert.ok(answered.get('/api/v1/releases/r2')?.includes('"CANARY"'), 'its name is told')
  })

  test('that do not come fail the deploy, and change nothing', async (t) => {
    const store = openStore()
    const deck = await startReadyHere(t, APP, { flags: store.flags })
    const before = await pidsOf(deck)
    for (const [script, message] of [[`echo ${CANARY}; echo ${CANARY} >&2; exit 3`,
      /^secrets: expected sh to end with exit code 0, received exit code 3 after/], ['sleep 600',
      /^secrets: expected sh to end within 5 s \(option secrets\.timeoutMs\)/], [`echo "{ ${CANARY}"`,
      /received no JSON$/], ['yes', /^secrets: expected sh to write at most/], [
      `echo '{ "NODE_OPTIONS": "${CANARY}" }'`,
      /received NODE_OPTIONS$/
    ]] as [string, RegExp][]) {
      store.become(script)
      const { status, body } = await deck.post('/rollouts', { kind: 'deploy' })
      assert.deepEqual([status, body.code], [500, 'secrets-failed'])
      assert.match(String(body.detail), message)
      assert.ok(!JSON.stringify(body).includes(CANARY))
    }
    const status = await deck.status()
    assert.deepEqual([status.release.id, status.rollout, await pidsOf(deck)], ['r1', null, before])
    assert.equal((await ask(deck)).value, CANARY)
    assert.deepEqual((await deck.api('/releases')).body.items.map(({ id }) => id), ['r1'])
    assert.deepEqual(filesWithCanary(deck.folder), [])
  })

  rareTest('that have changed make a new release, and each release keeps its own without asking again', async (t) => {
    const store = openStore()
    store.hold({ CANARY, FIRST: '1' })
    const deck = await startReadyHere(t, APP, { workers: 1, flags: store.flags })
    store.hold({ CANARY: 'its next value', SECOND: '2' })
    assert.equal((await deck.rollout('deploy')).state, 'succeeded')
    assert.deepEqual([(await ask(deck)).value, store.asked()], ['its next value', 2])
    const { body: release } = await deck.api('/releases/r2')
    assert.deepEqual([release.changed?.environment, release.environment?.names], [['CANARY', 'FIRST', 'SECOND'], [
      'CANARY',
      'SECOND'
    ]])
    store.become('exit 1')
    const { pid } = await ask(deck)
    process.kill(pid, 'SIGKILL')
    await deck.untilStatus(({ workers, readyWorkers }) => readyWorkers === 1 && workers[0].pid !== pid,
      'its replacement')
    assert.equal((await ask(deck)).value, 'its next value')
    const { body: rollback } = await deck.post('/rollouts', { kind: 'rollback' })
    const done = await deck.rolloutEnd(rollback)
    assert.deepEqual([done.state, (await ask(deck)).value, (await ask(deck, 'FIRST')).value, store.asked()], [
      'succeeded',
      CANARY,
      '1',
      2
    ])
  })

  test('are asked for by the next master, which keeps the workers while they do not come, and starts no others', async (t) => {
    const collector = await startCollector(t)
    const store = openStore({ jobs: { nightly: { command: 'true' } } })
    const deck = await startReady(t, APP, { flags: store.flags })
    const before = await pidsOf(deck)
    const asked = store.asked()
    store.become(`echo ${CANARY} >&2; exit 1`)
    await deck.loseMaster()
    const { message } = await deck.untilEvent('secrets.failed')
    assert.match(String(message),
      /^secrets: expected sh to end with exit code 0, received exit code 1 .*\. The workers serve on, and none is started; it is tried again$/)
    process.kill(before[0], 'SIGKILL')
    await deck.untilEvent('worker.exited', { pid: before[0] })
    const status = await deck.untilStatus(({ readyWorkers }) => readyWorkers === 1, 'the other one')
    assert.deepEqual([status.state, await pidsOf(deck), status.health.tone], ['starting', [before[1]], 'bad'])
    assert.match(status.health.text, /^1 of 2 workers serves; no worker can be started/)
    assert.match(String(status.secrets.problem), /^secrets: expected sh/)
    assert.equal((await ask(deck)).pid, before[1])
    for (const [where, body, code] of [['/rollouts', { kind: 'restart' }, 'starting'], ['/rollouts', { kind: 'deploy' },
      'secrets-failed'], ['/jobs/nightly/runs', {}, 'secrets-failed'], ['/jobs/runs', { command: ['true'] },
      'secrets-failed'], ['/jobs/place', {}, 'secrets-failed']] as [string, object, string][])
      assert.equal((await deck.post(where, body)).body.code, code, where)
    await until(() => store.asked() > asked + 2, 'another try')
    store.hold({ CANARY: 'its next value', OTEL_EXPORTER_OTLP_ENDPOINT: collector.url })
    await deck.untilEvent('secrets.read')
    const { release } = await deck.until({ ready: 2 })
    assert.equal((await pidsOf(deck)).some((pid) => before.includes(pid)), false)
    assert.deepEqual([release.id, release.environmentChanged, (await ask(deck)).value], ['r1', true, 'its next value'])
    assert.equal((await deck.post('/jobs/nightly/runs')).status, 201)
    assert.equal((await deck.status()).secrets.problem, null)
    await until(() => collector.logs().length > 0, 'the collector that the secrets name to hear of it')
  })

  rareTest('that do not come fail an upgrade, whose master goes on', async (t) => {
    const store = openStore()
    const deck = await startReady(t, APP, { workers: 1, flags: store.flags })
    const { pid } = await ask(deck)
    store.become('exit 1')
    assert.equal((await deck.post('/upgrade')).status, 202)
    await deck.untilEvent('master.upgrade-failed')
    assert.deepEqual([(await ask(deck)).pid, (await deck.status()).secrets.problem], [pid, null])
    assert.match(deck.output.stderr, /secrets: expected sh to end with exit code 0/)
  })

  test('that do not come refuse a start that has no workers', async () => {
    const store = openStore()
    store.become(`echo ${CANARY} >&2; exit 1`)
    const { code, stderr } = await runCli(['start', APP, '--admin-port', '0', '--data-dir', tempFolder(),
      ...store.flags])
    assert.equal(code, 1)
    assert.match(stderr,
      /secrets: expected sh to end with exit code 0, received exit code 1 after .*; what it has written is not shown/)
    assert.ok(!stderr.includes(CANARY))
  })

  rareTest('that an app throws, or a hook or a job prints, are masked in events, crash records and outputs',
    async (t) => {
      const store = openStore({ hooks: { beforeDeploy: { command: ['sh', '-c', 'echo "$CANARY"; exit 1'] } },
        jobs: { nightly: { command: 'echo "$CANARY"; exit 1' } } })
      const deck = await startReadyHere(t, APP, { workers: 1, flags: store.flags })
      await ask(deck, '../throw/CANARY').catch(() => {})
      const { detail } = await deck.untilEvent('worker.exited')
      const { body: crash } = await deck.api(`/crashes/${Number(detail?.crashGroup)}`)
      assert.match(JSON.stringify(crash), /no luck with \[CANARY\]/)
      await deck.until({ ready: 1 })
      assert.equal((await deck.rollout('deploy')).state, 'failed')
      const hook = await deck.untilEvent('hook.failed')
      assert.equal(hook.detail?.output, '[CANARY]\n')
      const { body: run } = await deck.post('/jobs/nightly/runs')
      await deck.untilEvent('job.failed')
      assert.equal((await deck.api(`/jobs/runs/${run.id}`)).body.output, '[CANARY]\n')
      const { answered } = await readEverything(deck, ['1', '2', 'r1', 'nightly', String(run.id),
        String(detail?.crashGroup)])
      // The log of a worker is the app's own, and its page shows the end of that.
      const shown = [...answered].filter(([where, text]) => text.includes(CANARY) && !/\/logs|^\/workers\//.test(where))
        .map(([where]) => where)
      assert.deepEqual(shown, [])
      assert.deepEqual(filesWithCanary(deck.folder).map((file) => path.relative(deck.folder, file)), [
        'logs/slot-1.stderr.log'
      ])
    })

  rareTest('are of each app of a host alone', async (t) => {
    const host = await startHost(t)
    const [shop, mail] = ['of-the-shop', 'of-the-mail'].map((value) => {
      const store = openStore({ workers: 1 })
      store.hold({ CANARY: value })
      return store
    })
    for (const [name, store] of Object.entries({ shop, mail })) {
      await host.add({ name, cwd: store.folder, flags: { entry: APP }, env: { PATH: process.env.PATH } })
      await host.untilApp(name, ({ state }) => state === 'running')
    }
    const values = await Promise.all(['shop', 'mail'].map(async (name) => {
      const { app: { addresses: [address] } } = await host.request(`/apps/${name}/status`)
      return (await (await fetch(new URL('/get/CANARY', address))).json() as Told).value
    }))
    assert.deepEqual(values, ['of-the-shop', 'of-the-mail'])
    mail.become('exit 1')
    await assert.rejects(host.post('/apps/mail/rollouts', { kind: 'deploy' }), { code: 'secrets-failed' })
    await host.post('/apps/shop/rollouts', { kind: 'deploy' })
  })
})
