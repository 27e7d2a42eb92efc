import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { test, type TestContext } from 'node:test'
import { createProgramEnd } from '../../../server/cluster/program-end.ts'
import { identifyProcess, isAlive, signalProcess } from '../../../server/system/process-identity.ts'
import { TREE_VARIABLE, treeOf } from '../../../server/system/process-tree.ts'

const skip = process.platform !== 'linux' && 'it takes /proc'
/** Says by which signals it was told, and ends. */
const SERVER =
  'node -e "for (const s of [\'SIGTERM\', \'SIGQUIT\']) process.on(s, () => { console.log(s); process.exit() }); console.log(\'up\'); setInterval(() => {}, 1e6)"'

test(
  'it is told to end once nothing waits at its socket and its connections are closed, and no second time before it has had its time',
  { skip },
  async (t) => {
    const { child, end, said, heard } = await run(t, SERVER.replace('process.exit()', '0'), { queue: () => queue--,
      countConnections: () => () => connections-- })
    let [queue, connections] = [2, 3]
    await end.drain({ idleGraceMs: 60_000 })
    await said('SIGTERM')
    assert.deepEqual([heard, queue, connections], [['draining'], -1, -1])
    end.terminate()
    await said('SIGTERM')
    end.kill()
    assert.deepEqual(await once(child, 'exit'), [null, 'SIGKILL'])
  }
)

test('connections that stay open are waited for as long as idle ones may be', { skip }, async (t) => {
  let looks = 0
  const { end, said } = await run(t, SERVER, { countConnections: () => () => ++looks })
  await end.drain({ idleGraceMs: 50 })
  await said('SIGTERM')
  assert.ok(looks > 1, `${looks} looks`)
})

test('what a shell has started is told when the shell has ended, and the end is told when all have', { skip },
  async (t) => {
    const { main, said, end, told, heard } = await run(t, `${SERVER} & wait`)
    end.terminate()
    assert.deepEqual(await told, { code: null, signal: 'SIGTERM', isAsTold: true })
    await said('SIGTERM')
    assert.deepEqual([treeOf(main), heard], [[], []])
  })

test('the signal is the one that is asked for, and its exit code by it is as told', { skip }, async (t) => {
  const { told, end, said } = await run(t, SERVER.replace('process.exit()', 'process.exit(131)'), { signal: 'SIGQUIT' })
  end.terminate()
  await said('SIGQUIT')
  assert.deepEqual(await told, { code: 131, signal: null, isAsTold: true })
})

test(
  'where its main process fails, others of it are told to end, the master hears of it, and who does not end is killed',
  { skip },
  async (t) => {
    const { main, told, said, heard } = await run(t, `${SERVER.replace('process.exit()', '0')} & wait`, {
      termGraceMs: 100
    })
    signalProcess(main, 'SIGKILL')
    await said('SIGTERM')
    assert.deepEqual(await told, { code: null, signal: 'SIGKILL', isAsTold: false })
    assert.deepEqual(heard, ['its main process was ended by SIGKILL, and others that it had started still ran'])
    assert.deepEqual(treeOf(main), [])
  }
)

test(
  'those that a failed main process has left are told to end once they have finished their requests, or have had 2 s',
  { skip },
  async (t) => {
    let [queue, connections] = [2, 3]
    const { main, told, said } = await run(t, `${SERVER} & wait`, { queue: () => queue--,
      countConnections: (pids) => () => pids().includes(main.pid) ? NaN : connections-- })
    signalProcess(main, 'SIGKILL')
    await said('SIGTERM')
    await told
    assert.deepEqual([queue, connections], [-1, -1])

    const busy = await run(t, `${SERVER} & wait`, { countConnections: (pids) => () => pids().length })
    const begun = performance.now()
    signalProcess(busy.main, 'SIGKILL')
    await busy.said('SIGTERM')
    assert.ok(performance.now() - begun > 2000)
  }
)

test('who is killed takes along all that it has started, in whatever session', { skip }, async (t) => {
  const { main, end, told } = await run(t, `setsid ${SERVER} & wait`)
  const [, server] = treeOf(main)
  end.kill()
  await told
  assert.equal(isAlive(server), false)
})

/** `script`: of the shell; it or one of its own says "up" */
async function run (t: TestContext, script: string,
  { signal = 'SIGTERM', termGraceMs = 60_000, queue, countConnections }: { signal?: NodeJS.Signals,
    termGraceMs?: number, queue?: () => number, countConnections?: (pids: () => number[]) => () => number } = {})
{
  const mark = `test-${process.pid}-${Math.random()}`
  const child = spawn('sh', ['-c', script.includes('wait') ? script : `exec ${script}`], { detached: true,
    stdio: ['ignore', 'pipe', 'inherit'], env: { ...process.env, [TREE_VARIABLE]: mark } })
  const main = { ...identifyProcess(Number(child.pid)), mark }
  t.after(() => {
    for (const each of treeOf(main)) signalProcess(each, 'SIGKILL')
  })
  const heard: string[] = []
  const end = createProgramEnd(main, { stop: { signal, termGraceMs }, queue, countConnections,
    onMessage: (message) => heard.push(message.type === 'crashing' ? message.errorMessage : message.type) })
  const told = once(child, 'exit').then(async ([code, by]) => ({ code, signal: by,
    ...await end.ended({ code, signal: by }) })
  )
  const lines = child.stdout.setEncoding('utf8').iterator({ destroyOnReturn: false })
  let rest = ''
  /** `line`: the next one */
  const said = async (line: string) => {
    while (!rest.includes('\n')) rest += (await lines.next()).value
    const [first, ...others] = rest.split('\n')
    rest = others.join('\n')
    assert.equal(first, line)
  }
  await said('up')
  return { main, child, end, told, said, heard }
}
