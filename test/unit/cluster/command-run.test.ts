import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { test } from 'node:test'
import { adoptCommand } from '../../../server/cluster/command-left.ts'
import { runCommand } from '../../../server/cluster/command-run.ts'
import { tempFolder } from '../../support/folder.ts'
import { isGone } from '../../support/is-gone.ts'
import { until } from '../../support/until.ts'

const run = (script: string, more?: Partial<Parameters<typeof runCommand>[0]>) =>
  runCommand({ name: 'beforeDeploy', option: 'hooks.beforeDeploy', command: ['sh', '-c', script], timeoutMs: 20_000,
    cwd: os.tmpdir(), env: process.env, ...more })

test('a command that ends with 0 has passed, with what it wrote to both streams', async () => {
  const { passed, code, reason, output, durationMs } = await run('echo one; echo two >&2').ended
  assert.deepEqual([passed, code, reason, output.split('\n').sort()], [true, 0, null, ['', 'one', 'two']])
  assert.ok(durationMs >= 0)
})

test('words reach the program as they are: there is no shell', async () => {
  const { output } = await run('', { command: ['printf', '%s', '$HOME; echo `id`'] }).ended
  assert.equal(output, '$HOME; echo `id`')
})

test('any other end is a failure that says how, with the last line', async () => {
  assert.match(String((await run('echo first; echo why; exit 7').ended).reason),
    /^beforeDeploy exited with code 7 after [\d.]+ m?s: why$/)
  assert.match(String((await run('kill -9 $$').ended).reason), /^beforeDeploy was ended by SIGKILL after [\d.]+ m?s$/)
})

test('a command that cannot be started is a failure that says which and where', async () => {
  const { passed, reason } = await run('', { command: ['no-such-program'], cwd: '/' }).ended
  assert.deepEqual([passed, reason], [false, 'beforeDeploy could not be started: no-such-program in / (ENOENT)'])
  assert.match(String((await run('', { cwd: '/no/such/folder' }).ended).reason),
    /could not be started: sh in \/no\/such\/folder \(ENOENT\)$/)
  assert.match(String((await run('', { command: ['true', 'x'.repeat(4 * 1024 * 1024)] }).ended).reason),
    /could not be started: true in .+ \(E2BIG\)$/)
})

test('a failure names the script whose lines end as on Windows, however it is called, and no file that is none', async () => {
  const cwd = tempFolder()
  const write = (name: string, text: string) => writeFileSync(path.join(cwd, name), text, { mode: 0o755 })
  write('job.sh', '#!/bin/sh\r\nset -e\r\n')
  write('plain', '#!/bin/bash\r\nset -e\r\n')
  write('app.js', '#!/usr/bin/env node\r\nprocess.exit(3)\r\n')
  const why = async (command: string | string[]) => String((await run('', { command, cwd }).ended).reason)
  for (const command of [['./job.sh'], './job.sh', 'true && ./job.sh --fast', ['sh', 'job.sh'], ['bash', './plain'],
    './app.js'])
  {
    assert.match(await why(command),
      /; the lines of (\.\/)?(job\.sh|plain|app\.js) end in CRLF, as on Windows, and the CR counts as part of what is called: have them end in LF \(dos2unix\)$/,
      String(command))
  }
  for (const command of [['node', 'app.js'], 'cat . /dev/null no-such-file.sh'])
    assert.doesNotMatch(await why(command), /CRLF/)
})

test('of long output the last part is kept, without anything that a terminal would obey', async () => {
  const { output } = await run('seq 100000; printf "\\033]0;title\\007\\033[2Jred\\rover\\b\\000\\n"').ended
  assert.ok(output.startsWith('…') && output.length <= 8001)
  assert.ok(output.endsWith('\n100000\nred\nover\n'), JSON.stringify(output.slice(-40)))
})

test('one that ignores SIGTERM is killed when its grace is over, with its whole group', async () => {
  const hook = run('trap "" TERM; (trap "" TERM; while :; do sleep 0.02; done) & echo $!; while :; do sleep 0.02; done',
    { onOutput: () => hook.end('was ended, as the deploy was called off', { graceMs: 50 }) })
  const { passed, signal, reason, output } = await hook.ended
  assert.deepEqual([passed, signal, reason], [false, 'SIGKILL', 'beforeDeploy was ended, as the deploy was called off'])
  await until(() => isGone(output), 'the end of its child')
})

test('one that is told to end and ends with 0 has not passed', async () => {
  const hook = run('trap "exit 0" TERM; while :; do sleep 0.02; done', { timeoutMs: 100 })
  const { passed, reason } = await hook.ended
  assert.deepEqual([passed, reason], [false, 'beforeDeploy did not end within 100 ms (option hooks.beforeDeploy)'])
})

test('what it leaves running in its group ends with it, and what has left the group is not waited for', async () => {
  const file = path.join(tempFolder(), 'it-has-left')
  const began = performance.now()
  const { passed, output } = await run(
    `sleep 1000 & echo $!; setsid sh -c 'echo $$ > ${file}; exec sleep 20' & until [ -s ${file} ]; do sleep 0.01; done`
  ).ended
  assert.ok(passed && performance.now() - began < 15_000)
  process.kill(Number(readFileSync(file)))
  await until(() => isGone(output), 'the end of its child')
})

test('a command that is let go of is gone on with by the same handles, as often as that has to be: all that it writes arrives, and how it ends', async () => {
  const gate = path.join(tempFolder(), 'gate')
  let before = ''
  const onOutput = (_: string, text: string) => {
    before += text
  }
  let each = run(`echo one; while [ ! -e ${gate} ]; do sleep 0.02; done; echo two; exit 3`, { onOutput })
  const exits: { pid: number, code: number | null, signal: string | null }[] = []
  for (let times = 0; times < 2; times++) {
    const { identity, handles: { stdout, stderr } } = each
    const exit = each.letGo()
    assert.ok(exit && identity && stdout && stderr)
    exit.then((end) => exits.push(end))
    each = adoptCommand({ identity, handles: { stdout, stderr }, findExit: () => exits[0] ?? null }, {
      name: 'beforeDeploy',
      option: 'hooks.beforeDeploy',
      timeoutMs: 20_000,
      before,
      onOutput
    })
  }
  writeFileSync(gate, '')
  const { code, output, reason } = await each.ended
  assert.deepEqual([code, output], [3, 'one\ntwo\n'])
  assert.match(String(reason), /exited with code 3/)
  assert.equal(each.letGo(), null)
})
