import assert from 'node:assert/strict'
import { PassThrough } from 'node:stream'
import { text } from 'node:stream/consumers'
import { test } from 'node:test'
import { createTerminal } from '../../server/terminal.ts'
import { fake } from '../support/fake.ts'

test('shows what a worker has said that did not start: once, and nothing that a terminal would obey', async () => {
  const stdout = new PassThrough()
  const terminal = createTerminal({ stdout, stderr: new PassThrough() })
  const exited = (lastLines: string[]) =>
    terminal.show(
      fake({ at: '2026-01-01T10:00:00.000Z', type: 'worker.exited', cause: 'boot-failure', message: 'worker 1 exited',
        detail: { lastLines } })
    )
  exited(['const x = {{', 'Syntax\u001b]0;owned\u0007Error\r'])
  exited(['const x = {{', 'Syntax\u001b]0;owned\u0007Error\r'])
  exited(['another'])
  stdout.end()
  assert.deepEqual((await text(stdout)).split('\n'), ['10:00:00 worker.exited Worker 1 exited', '  | const x = {{',
    '  | SyntaxError ', '10:00:00 worker.exited Worker 1 exited', '10:00:00 worker.exited Worker 1 exited',
    '  | another', ''])
})
