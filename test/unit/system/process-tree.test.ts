import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { text } from 'node:stream/consumers'
import { test, type TestContext } from 'node:test'
import { identifyProcess, isAlive, signalProcess } from '../../../server/system/process-identity.ts'
import { statOf } from '../../../server/system/proc.ts'
import { TREE_VARIABLE, treeOf } from '../../../server/system/process-tree.ts'
import { untilFound } from '../../support/until.ts'

const skip = process.platform !== 'linux' && 'it takes /proc'

test(
  'a tree has those whose parent has ended, also in a session of their own, and nobody else, before and after its first process has ended',
  { skip },
  async (t) => {
    const { root, child } = runTree(t, 'sleep 600 & (sleep 601 & setsid sleep 602 &) ; setsid sleep 603 & wait')
    runTree(t, 'sleep 604')
    const all = await untilFound(() => [treeOf(root)].find(({ length }) => length === 5), 'all of it')
    assert.equal(all[0].pid, root.pid)
    signalProcess(root, 'SIGKILL')
    await once(child, 'exit')
    const rest = treeOf(root)
    assert.deepEqual(numbersOf(rest), numbersOf(all.slice(1)))
    for (const each of rest) signalProcess(each, 'SIGKILL')
    await untilFound(() => !rest.some(isAlive), 'their end')
    assert.deepEqual(treeOf(root), [])
  }
)

test('one without the variable, in a session of its own, is found as long as it is known', { skip }, async (t) => {
  const { root, child } = runTree(t, `env -u ${TREE_VARIABLE} setsid sleep 605 & wait`)
  const hasOwnSession = (pid: number) => Number(statOf(pid)?.[6]) === pid
  const known = await untilFound(() => [treeOf(root)].find((all) => all.length === 2 && hasOwnSession(all[1].pid)),
    'both')
  t.after(() => signalProcess(known[1], 'SIGKILL'))
  signalProcess(root, 'SIGKILL')
  await once(child, 'exit')
  assert.deepEqual(treeOf(root), [])
  assert.deepEqual(treeOf(root, known), [known[1]])
})

test('who belongs to a tree itself finds the programs that it has started, but neither itself nor others of its tree', {
  skip
}, async (t) => {
  const script = `
    import { spawn } from 'node:child_process'
    import { programProcesses, TREE_VARIABLE } from ${
    JSON.stringify(import.meta.resolve('../../../server/system/process-tree.ts'))
  }
    const start = (env) => spawn('sleep', ['606'], { stdio: 'ignore', env: { ...process.env, ...env } })
    const [program, other] = [start({ [TREE_VARIABLE]: 'of its own' }), start({})]
    await new Promise((resolve) => other.once('spawn', resolve))
    console.log(JSON.stringify({ program: program.pid, found: programProcesses() }))
    for (const each of [program, other]) each.kill('SIGKILL')`
  const child = spawn(process.execPath, ['--input-type=module', '--eval', script], {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: { ...process.env, [TREE_VARIABLE]: 'outer' }
  })
  t.after(() => child.kill('SIGKILL'))
  const { program, found } = JSON.parse(await text(child.stdout))
  assert.deepEqual(found, [program])
})

function runTree (t: TestContext, script: string) {
  const mark = `test-${process.pid}-${Math.random()}`
  const child = spawn('sh', ['-c', script], { detached: true, stdio: 'ignore',
    env: { ...process.env, [TREE_VARIABLE]: mark } })
  const root = { ...identifyProcess(Number(child.pid)), mark }
  t.after(() => {
    for (const each of treeOf(root)) signalProcess(each, 'SIGKILL')
  })
  return { root, child }
}

function numbersOf (processes: { pid: number }[]) {
  return processes.map(({ pid }) => pid).sort((a, b) => a - b)
}
