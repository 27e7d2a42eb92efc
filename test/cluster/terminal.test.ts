import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { describe, test } from 'node:test'
import { startReady } from '../support/deck.ts'
import { startDeckHere } from '../support/deck-here.ts'
import { rareOnly } from '../support/rare.ts'

/** Runs a program in a terminal of its own, hangs up once its standard input ends, and ends as that does. */
const IN_A_TERMINAL = `
import os, pty, select, signal, sys
child, terminal = pty.fork()
if child == 0: os.execvp(sys.argv[1], sys.argv[1:])
signal.signal(signal.SIGTERM, lambda *_: (os.close(terminal), sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) % 256)))
while True:
    try: os.write(1, os.read(terminal, 4096))
    except OSError: break
`
const lacksPython = spawnSync('python3', ['-c', 'import pty, os; os.waitstatus_to_exitcode']).status !== 0

describe('a terminal', { concurrency: true, skip: lacksPython && 'makes terminals with python3' }, () => {
  for (const flags of [[], ['--no-keeper']]) {
    test(`that is closed stops what was started from it ${flags.join('')}, as it ends node, and deploys nothing`, {
      skip: flags.length > 0 && rareOnly
    }, async (t) => {
      const deck = await startReady(t, 'answers-with-pid.js', { workers: 1, flags,
        launch: { through: ['python3', '-c', IN_A_TERMINAL] } })
      const [link] = /http:\S+\/sign-in\?code=[\w-]+/.exec(deck.output.stdout) ?? []
      const open = () => fetch(String(link), { redirect: 'manual' })
      assert.deepEqual([(await open()).status, (await open()).headers.get('set-cookie')], [303, null],
        'the link that it shows signs in once')
      deck.signal('SIGTERM')
      // Killed by SIGHUP, modulo 256.
      assert.equal((await deck.exited).code, 255)
      const next = await startDeckHere(t, 'answers-with-pid.js', { workers: 1, dataDir: deck.folder })
      const events = await next.history('type=master.stopped,rollout.started')
      assert.deepEqual(events.map(({ type, code }) => [type, code]), [['master.stopped', 0]])
    })
  }
})
