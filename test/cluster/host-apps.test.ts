import assert from 'node:assert/strict'
import { existsSync, mkdirSync, readdirSync, readFileSync, readlinkSync, rmSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { describe, test } from 'node:test'
import { setImmediate, setTimeout as wait } from 'node:timers/promises'
import { attempt } from '../../server/errors.ts'
import { hostAppsHere, orderOf } from '../support/apps-here.ts'
import { readRecords } from '../support/records.ts'
import { tempFolder } from '../support/folder.ts'
import { get } from '../support/asking.ts'
import { busyPort } from '../support/ports.ts'
import { rareTest } from '../support/rare.ts'
import { until, untilFound } from '../support/until.ts'
import type { AppView } from '../../server/host/api-apps.ts'

const BY = { actor: 'ada' }

/** @returns a folder with it */
function folderWith (code: string): string {
  const folder = tempFolder()
  writeFileSync(path.join(folder, 'app.js'), code)
  return folder
}

const HELLO = 'require("node:http").createServer((_, response) => response.end(process.cwd())).listen(0)'
const THROWS = 'throw new Error("not today")'

describe('the apps of a host', { concurrency: 2 }, () => {
  test('run side by side, each in its folder; one stops and starts while the others serve; what an operator has stopped, also by its own page, is remembered', async (t) => {
    const host = hostAppsHere(t)
    const [one, other, own] = [folderWith(HELLO), folderWith(HELLO), folderWith(HELLO)]
    const added = await host.add(orderOf('one', { cwd: one }), BY)
    assert.deepEqual([added.name, added.state, added.path, added.dataDir], ['one', 'starting', '/apps/one',
      path.join(one, '.clusterdeck')])
    await host.add(orderOf('other', { cwd: other }), BY)
    const { addresses: [address], health } = await host.untilState('one', 'running')
    await host.untilState('other', 'running')
    assert.equal(health?.text, 'The worker is ready')
    assert.equal(await get(address), one)
    await host.stop('other', BY)
    const stopped = await host.untilState('other', 'stopped')
    assert.deepEqual([stopped.workers, stopped.health, host.opened('other')], [null, null, null])
    assert.equal(await get(address), one)
    await host.add(orderOf('own', { cwd: own }), BY)
    await host.untilState('own', 'running')
    // As its own page does it.
    host.opened('own')?.deck.dispatch({ type: 'stop', actor: 'ada' })
    await host.untilState('own', 'stopped')
    assert.deepEqual(host.list().map(({ name, state }) => [name, state]), [['one', 'running'], ['other', 'stopped'], [
      'own',
      'stopped'
    ]])
    await host.leave('test')

    const next = hostAppsHere(t, { folder: host.folder })
    next.startAll()
    await next.untilState('one', 'running')
    for (const name of ['other', 'own']) assert.equal(next.view(name).state, 'stopped')
    await next.start('other', BY)
    await next.untilState('other', 'running')
    assert.deepEqual(next.told, ['app.started one', 'app.started other'])
  })

  test('an ordered start that does not get ready goes back to what ran, which is told: with code, an option or a file that is broken, unless the files in place are changed', async (t) => {
    const host = hostAppsHere(t)
    const cwd = folderWith(HELLO)
    const write = (code: string) => writeFileSync(path.join(cwd, 'app.js'), code)
    const order = (flags: Record<string, string>) =>
      orderOf('shop', { cwd, flags: { restartMinDelayMs: '10', restartIntensityRestarts: '1', ...flags } })
    const isReady = ({ state, release }: AppView) => state === 'running' && release !== null
    const startAgain = async (flags: Record<string, string>) => {
      await host.stop('shop', BY)
      await host.untilState('shop', 'stopped')
      await host.add(order(flags), BY)
      const { release, reason } = await host.until('shop', isReady)
      return [release, reason]
    }
    const KEPT = { releasesMode: 'folder' }
    await host.add(order(KEPT), BY)
    await host.until('shop', isReady)
    write(THROWS)
    const [release, reason] = await startAgain(KEPT)
    assert.match(`${release}: ${reason}`,
      /^r1: r2 did not get ready: worker \d \(slot 1\) .*not today; r1 runs instead$/)
    assert.equal(host.view('shop').health?.text, 'The worker is ready; a release was rolled back')
    assert.equal(host.opened('shop')?.deck.notices.list()[0].message, `The start was rolled back: ${reason}`)
    assert.deepEqual(await startAgain(KEPT), ['r1', null], 'it is not tried a second time')
    assert.match(String(await startAgain({ ...KEPT, readySignal: 'message', readyTimeoutMs: '300' })),
      /^r1,r1 with ready.signal "auto" → "message", ready.timeoutMs 30000 → 300 did not get ready: .* was not ready within 300 ms .*; r1 runs instead$/)
    writeFileSync(path.join(cwd, 'clusterdeck.config.json'), '{ "no": "option" }')
    await host.stop('shop', BY)
    await host.untilState('shop', 'stopped')
    await host.start('shop', BY)
    assert.match(String((await host.until('shop', isReady)).reason),
      /^the order cannot be started: .*unknown option "no".*; r1 runs instead$/)
    await host.leave('test')
    const next = hostAppsHere(t, { folder: host.folder })
    next.startAll()
    assert.equal((await next.until('shop', isReady)).reason, null)

    rmSync(path.join(cwd, 'clusterdeck.config.json'))
    const IN_PLACE = { dataDir: path.join(cwd, 'live'), releasesMode: 'live' }
    const startInPlace = async (flags: Record<string, string> = {}) => {
      if (next.list().some(({ name }) => name === 'live')) await next.stop('live', BY)
      await next.add({ ...order({ ...IN_PLACE, ...flags }), name: 'live' }, BY)
    }
    // Without it nobody knows whether the files are still the same.
    const untilListed = (release: string) =>
      until(() => existsSync(path.join(cwd, 'live', 'manifests', `${release}.stamps.gz`)), 'the list of its files')
    write(HELLO)
    await startInPlace()
    await next.until('live', isReady)
    await untilListed('r1')
    await startInPlace({ readySignal: 'message', readyTimeoutMs: '300' })
    assert.match(String((await next.until('live', (view) => isReady(view) && view.reason !== null)).reason),
      /^r2 did not get ready: .* was not ready within 300 ms .*; r1 runs instead$/)
    assert.match(String(next.view('live').health?.text), /^The worker is ready/)
    await startInPlace()
    await next.until('live', (view) => isReady(view) && view.reason === null)
    await untilListed('r3')
    write(THROWS)
    await startInPlace()
    const [{ message }] = await untilFound(() => {
      const { items } = next.opened('live')?.history.page({ type: 'rollback.refused', limit: 1 }) ?? { items: [] }
      return items.length > 0 && items
    }, 'the news that there is no way back')
    assert.match(String(message),
      /^r4 did not get ready: .*, but r3 cannot come back: r4 was deployed from the same folder/)
    assert.equal(next.view('live').state, 'starting')
  })

  test('an order for what runs changes nothing, and names what differs; applied, it counts from the next deploy on, and at once where it needs none', async (t) => {
    const cwd = folderWith(HELLO.replace('process.cwd()', 'process.env.LEVEL'))
    writeFileSync(path.join(cwd, 'other.js'), HELLO.replace('process.cwd()', '"other " + process.env.LEVEL'))
    const host = hostAppsHere(t)
    const order = (env: Record<string, string>, flags: Record<string, string> = {}) => {
      const { env: own, ...rest } = orderOf('shop', { cwd, flags })
      return { ...rest, env: { ...own, ...env } }
    }
    const answer = async () =>
      await get(
        (await host.until('shop', ({ state, workers }) => state === 'running' && workers?.ready === workers?.desired))
          .addresses[0]
      )
    const deploy = async () => {
      const { deck } = host.opened('shop') ?? assert.fail()
      const ended = new Promise((resolve) =>
        deck.events.subscribe(({ type }) => type === 'rollout.succeeded' && resolve(null))
      )
      await deck.deploy({ actor: 'ada' })
      await ended
      return await answer()
    }
    await host.add(order({ LEVEL: 'one' }), BY)
    assert.equal(await answer(), 'one')
    assert.deepEqual((await host.add(order({ LEVEL: 'one', SSH_TTY: 'x' }), BY)).notApplied, [])
    assert.deepEqual((await host.add(order({ LEVEL: 'two' }), BY)).notApplied, ['variable LEVEL'])
    await assert.rejects(host.add(order({ LEVEL: 'one' }, { entry: 'other.js', workers: '2' }), BY), {
      code: 'app-running',
      message: /entry ".*app\.js" → ".*other\.js", workers 1 → 2 .*--apply/
    })
    assert.deepEqual([await deploy(), host.view('shop').workers?.desired], ['one', 1], 'nothing was changed')

    assert.deepEqual(await host.changeVariables('shop', order({ LEVEL: 'two' }).env, { isDry: true }), ['LEVEL'])
    assert.equal(await deploy(), 'one')
    await host.changeVariables('shop', order({ LEVEL: 'two' }).env, { isDry: false })
    assert.equal(await deploy(), 'two')

    const applied = await host.add(
      order({ LEVEL: 'three' }, { entry: 'other.js', workers: '2', drainDeadlineMs: '1234' }),
      { ...BY, applies: true }
    )
    assert.deepEqual(applied.notApplied.map((text) => text.split(' ')[0]), ['entry', 'workers', 'drain.deadlineMs',
      'variable'])
    assert.equal(await answer(), 'two')
    const { settings } = host.opened('shop')?.deck ?? assert.fail()
    assert.equal(settings.list().find(({ name }) => name === 'drain.deadlineMs')?.value, 1234)
    assert.deepEqual([await deploy(), host.view('shop').workers?.desired], ['other three', 2])
    await host.leave('test')
    const next = hostAppsHere(t, { folder: host.folder })
    next.startAll()
    const { addresses: [address], workers } = await next.untilState('shop', 'running')
    assert.deepEqual([await get(address), workers?.desired], ['other three', 2])
  })

  test('one that cannot be started is tried again until it runs, which is told; nobody tries what somebody has stopped', async (t) => {
    const host = hostAppsHere(t)
    const { port, close } = await busyPort()
    const order = orderOf('shop', { cwd: folderWith(HELLO.replace('listen(0)', `listen(${port}, '127.0.0.1')`)) })
    await host.add(order, BY)
    const failed = await host.untilState('shop', 'failed')
    assert.ok(Date.parse(String(failed.nextTryAt)) > Date.now() - 5000)
    await host.stop('shop', BY)
    assert.deepEqual([host.view('shop').state, host.view('shop').nextTryAt], ['stopped', null])
    await host.start('shop', BY)
    await host.untilState('shop', 'failed')
    await close()
    await host.until('shop', ({ state, nextTryAt }) => state === 'running' && nextTryAt === null)
    assert.deepEqual(host.told.map((text) => text.split(' ')[0]), ['app.added', 'app.started', 'app.failed',
      'app.stopped', 'app.started', 'app.failed', 'app.recovered'])
  })

  for (const when of ['is opened', 'tries its port', 'is closed again']) {
    test(`one that is stopped while it ${when}, as it cannot be started, is stopped`, async (t) => {
      const host = hostAppsHere(t)
      const { port, close } = await busyPort()
      t.after(close)
      const adding = host.add(
        orderOf('shop', { cwd: folderWith(HELLO.replace('listen(0)', `listen(${port}, '127.0.0.1')`)) }),
        BY
      )
      while (when === 'is opened' ? host.list().length === 0 : host.opened('shop') === null) await setImmediate()
      if (when === 'is closed again') {
        await new Promise<void>((resolve) =>
          host.opened('shop')?.deck.events.subscribe(({ type }) => {
            if (type === 'master.stopped') resolve()
          })
        )
      }
      assert.equal(host.view('shop').state, 'starting')
      await host.stop('shop', BY)
      await host.until('shop', ({ state, nextTryAt }) => state === 'stopped' && nextTryAt === null)
      await adding
      assert.deepEqual(host.told.map((text) => text.split(' ')[0]), ['app.added', 'app.started', 'app.stopped'])
    })
  }

  test('adding one runs its config file once, a later start runs it anew', async (t) => {
    const host = hostAppsHere(t)
    const cwd = folderWith(HELLO)
    const runs = path.join(tempFolder(), 'runs')
    writeFileSync(path.join(cwd, 'clusterdeck.config.mjs'),
      `import { appendFileSync } from 'node:fs'\nappendFileSync(${
        JSON.stringify(runs)
      }, 'x')\nexport default { workers: 1 }`)
    await host.add(orderOf('shop', { cwd }), BY)
    await host.untilState('shop', 'running')
    assert.equal(readFileSync(runs, 'utf8'), 'x')
    await host.stop('shop', BY)
    await host.untilState('shop', 'stopped')
    await host.start('shop', BY)
    await host.untilState('shop', 'running')
    assert.equal(readFileSync(runs, 'utf8'), 'xx')
  })

  test('one does what it was told last, also where it was told that while it stops', async (t) => {
    const host = hostAppsHere(t)
    await host.add(orderOf('shop', { cwd: folderWith(HELLO) }), BY)
    const tell = async (...calls: ('stop' | 'start')[]) => {
      await host.untilState('shop', 'running')
      await Promise.all(calls.map((call) => host[call]('shop', BY)))
    }
    await tell('stop', 'start', 'stop', 'start')
    await tell('stop', 'start', 'stop')
    await host.untilState('shop', 'stopped')
    await wait(100)
    assert.deepEqual([host.view('shop').state, readRecords(host.folder)[0].wish], ['stopped', 'stopped'])
  })

  test('one waits for those that it depends on, and is not started where one of them fails; a program that throws, a folder that is a file and a port that is taken stay its own matter', async (t) => {
    const host = hostAppsHere(t)
    await host.add(orderOf('base', { cwd: folderWith(`setTimeout(() => { ${HELLO} }, 500)`) }), BY)
    await host.add(orderOf('above', { cwd: folderWith(HELLO), dependsOn: ['base'] }), BY)
    assert.equal(host.view('above').state, 'waiting')
    await host.untilState('above', 'running')
    assert.equal(host.view('base').state, 'running')
    // As by "stop --all" and "start --all": side by side, in the order of their names.
    for (const name of ['above', 'base']) host.stop(name, BY)
    for (const name of ['above', 'base']) await host.untilState(name, 'stopped')
    for (const name of ['above', 'base']) await host.start(name, BY)
    await host.untilState('above', 'running')

    await host.add(orderOf('loop', { cwd: folderWith(THROWS) }), BY)
    await host.until('loop', ({ health }) => health?.tone === 'bad')
    const port = new URL(host.view('base').addresses[0]).port
    await host.add(orderOf('thief', { cwd: folderWith(HELLO.replace('listen(0)', `listen(${port})`)) }), BY)
    const { reason } = await host.untilState('thief', 'failed')
    assert.match(String(reason), new RegExp(`port ${port} is in use`))
    await host.add(orderOf('heir', { cwd: folderWith(HELLO), dependsOn: ['thief'] }), BY)
    assert.match(String((await host.untilState('heir', 'failed')).reason),
      /^it depends on thief, which failed \(.*in use/)
    assert.deepEqual(host.list().map(({ name, state }) => `${name} ${state}`), ['above running', 'base running',
      'heir failed', 'loop starting', 'thief failed'])
  })

  rareTest(
    'are rolled out in the order in which that is asked for, some at a time: who waits says for whom, can be aborted, and keeps no rollback',
    async (t) => {
      const host = hostAppsHere(t, { rolloutsAtOnce: 1 })
      const gate = path.join(tempFolder(), 'gate')
      // With the gate its next worker is not ready.
      const slow = `const { existsSync } = require('node:fs'); const timer = setInterval(() => { if (existsSync(${
        JSON.stringify(gate)
      })) return; clearInterval(timer); ${HELLO} }, 20)`
      const names = ['first', 'second', 'third', 'fourth']
      for (const name of names) await host.add(orderOf(name, { cwd: folderWith(name === 'first' ? slow : HELLO) }), BY)
      for (const name of names) await host.untilState(name, 'running')
      const deckOf = (name: string) => (host.opened(name) as NonNullable<ReturnType<typeof host.opened>>).deck
      const rolloutOf = (name: string) => deckOf(name).snapshot().rollout
      const ends: string[] = []
      for (const name of names)
        deckOf(name).events.subscribe(({ type, cause }) => {
          if (/^rollout\.(succeeded|rolled-back|failed)$/.test(type)) ends.push(`${name} ${cause} ${type.slice(8)}`)
        })
      writeFileSync(gate, '')
      for (const name of names) {
        const begun = deckOf(name).dispatch({ type: 'rollout', kind: 'restart', actor: 'ada' })
        assert.deepEqual(begun.waitingFor, name === 'first' ? null : ['first'])
      }
      assert.equal(host.view('third').health?.text, 'Restart waits for its turn: first is being rolled out')
      deckOf('third').dispatch({ type: 'abort', rollout: Number(rolloutOf('third')?.id), actor: 'ada' })
      assert.deepEqual([rolloutOf('third'), ends], [null, ['third restart rolled-back']])
      await deckOf('third').deploy({ actor: 'ada' })
      assert.deepEqual(rolloutOf('third')?.waitingFor, ['first'])
      rmSync(gate)
      await until(() => names.every((name) => rolloutOf(name) === null), () =>
        `all rollouts to end: ${ends.join(', ')}`)
      assert.deepEqual(ends, ['third restart rolled-back', 'first restart succeeded', 'second restart succeeded',
        'fourth restart succeeded', 'third deploy succeeded'])
      writeFileSync(gate, '')
      deckOf('first').dispatch({ type: 'rollout', kind: 'restart', actor: 'ada' })
      const back = deckOf('third').dispatch({ type: 'rollout', kind: 'rollback', actor: 'ada' })
      assert.equal(back.waitingFor, null)
      await until(() => rolloutOf('third') === null, 'the rollback')
      assert.equal(rolloutOf('first')?.state, 'rolling')
      rmSync(gate)
      await until(() => rolloutOf('first') === null, 'the restart')
    }
  )

  test('an order that is wrong changes nothing: a name or folder that another one has, an option that there is not, an entry that is not there', async (t) => {
    const host = hostAppsHere(t)
    const cwd = folderWith(HELLO)
    await host.add(orderOf('shop', { cwd }), BY)
    await assert.rejects(host.add(orderOf('shop', { cwd: folderWith(HELLO) }), BY), { code: 'name-taken',
      message: /^name: expected one that no other app of this host has, received "shop"/ })
    await assert.rejects(host.add(orderOf('twin', { cwd }), BY), { code: 'name-taken',
      message: /^dataDir: .*the folder of shop; choose one by --data-dir$/ })
    await assert.rejects(host.add(orderOf('new', { flags: { wrokers: '2' } }), BY), { code: 'unknown-option' })
    await assert.rejects(host.add(orderOf('new', { flags: { entry: 'none.js' } }), BY), { code: 'entry-not-found' })
    await assert.rejects(host.start('shpo', BY), { code: 'not-found',
      message: 'This host has no app "shpo" (did you mean "shop"?); it has shop' })
    assert.deepEqual(host.list().map(({ name }) => name), ['shop'])
    assert.equal((await host.add(orderOf('shop', { cwd }), BY)).name, 'shop')
  })

  test('two apps of one folder are not taken for the same where nobody has named them', async (t) => {
    const host = hostAppsHere(t)
    const cwd = folderWith(HELLO)
    writeFileSync(path.join(cwd, 'web.js'), HELLO)
    const { name } = await host.add({ ...orderOf('', { cwd }), name: undefined }, BY)
    const web = orderOf('', { cwd, flags: { entry: 'web.js' } })
    await assert.rejects(host.add({ ...web, name: undefined }, BY), { code: 'name-taken',
      message: new RegExp(
        `received "${name}", which runs .*app.js; choose --name and --data-dir for another app, or add --apply to run .*web.js in its place`
      ) })
    assert.equal((await host.add({ ...orderOf('', { cwd }), name: undefined }, BY)).name, name)
    await assert.rejects(host.add({ ...web, name }, BY), { code: 'app-running' })
    await host.add({ ...orderOf('web', { cwd, flags: { entry: 'web.js', dataDir: '.clusterdeck-web' } }) }, BY)
    assert.deepEqual(host.list().map((each) => each.name), [name, 'web'].sort())
  })

  test('one that is removed leaves nothing but its folder, and by purge not even that; it has one identity also in the next host, and the next one of its name has another', async (t) => {
    const host = hostAppsHere(t)
    for (const name of ['kept', 'gone']) await host.add(orderOf(name, { cwd: folderWith(HELLO) }), BY)
    const folders = host.list().map(({ dataDir }) => String(dataDir))
    await Promise.all(['kept', 'gone'].map((name) => host.untilState(name, 'running')))
    const ids = ['kept', 'gone'].map((name) => String(host.identity(name)))
    await host.remove('kept', BY)
    await host.remove('gone', { ...BY, purge: true })
    while (host.list().length > 0) await new Promise((resolve) => setTimeout(resolve, 20))
    assert.deepEqual(folders.map((folder) => existsSync(folder)), [false, true])
    assert.deepEqual(host.forgotten.toSorted(), ids.toSorted())
    await until(() => readRecords(host.folder).length === 0, 'the records to be removed')
    await host.add(orderOf('kept', { cwd: folderWith(HELLO) }), { ...BY, isIdle: true })
    const identity = String(host.identity('kept'))
    assert.ok(!ids.includes(identity))
    assert.equal(hostAppsHere(t, { folder: host.folder }).identity('kept'), identity)
  })

  rareTest(
    'one that is started and stopped again and again leaves nothing open; a start during its stop follows that; one that is being removed takes no order',
    async (t) => {
      const host = hostAppsHere(t)
      const cwd = folderWith(HELLO)
      await host.add(orderOf('shop', { cwd }), BY)
      await host.untilState('shop', 'running')
      const before = await cycle(3)
      assert.deepEqual(await cycle(5), before)
      const orders = [host.stop('shop', BY), host.start('shop', BY)]
      assert.equal(host.view('shop').state, 'stopping')
      await Promise.all(orders)
      await host.untilState('shop', 'running')
      await host.remove('shop', BY)
      await assert.rejects(host.start('shop', BY), { code: 'stopping', message: 'shop is being removed' })
      await assert.rejects(host.add(orderOf('shop', { cwd }), BY), { code: 'stopping' })

      /** @returns what is open then */
      async function cycle (times: number): Promise<object> {
        for (let n = 0; n < times; n++) {
          await host.stop('shop', BY)
          await host.untilState('shop', 'stopped')
          await host.start('shop', BY)
          await host.untilState('shop', 'running')
        }
        await host.stop('shop', BY)
        await host.untilState('shop', 'stopped')
        // A descriptor is closed a moment after its file was given up.
        await until(() => !openFiles().some((file) => file.startsWith(cwd)), 'all of its files to be closed')
        await host.start('shop', BY)
        await host.untilState('shop', 'running')
        return { listeners: process.eventNames().reduce((sum, name) => sum + process.listenerCount(name), 0) }
      }
    }
  )

  test('a record that cannot be read is left as it is, and keeps no other app from being read', async (t) => {
    const folder = tempFolder()
    const strange = { half: '{ half', newer: '{"version":2,"name":"of a newer version"}' }
    mkdirSync(path.join(folder, 'apps'))
    for (const [id, text] of Object.entries(strange)) writeFileSync(path.join(folder, 'apps', `${id}.json`), text)
    await hostAppsHere(t, { folder }).add(orderOf('shop', { cwd: folderWith(HELLO) }), { ...BY, isIdle: true })
    assert.deepEqual(hostAppsHere(t, { folder }).list().map(({ name }) => name), ['shop'])
    for (const [id, text] of Object.entries(strange))
      assert.equal(readFileSync(path.join(folder, 'apps', `${id}.json`), 'utf8'), text)
  })
})

/** @returns of this process */
function openFiles (): string[] {
  return readdirSync('/proc/self/fd').flatMap((fd) => {
    // ENOENT: it has been closed meanwhile.
    return attempt(() => [readlinkSync(`/proc/self/fd/${fd}`)], [])
  })
}
