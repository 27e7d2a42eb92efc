import assert from 'node:assert/strict'
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { test } from 'node:test'
import { lookUpScript } from '../../../server/import/look.ts'
import { flagsOfProcess, variablesOfProcess } from '../../../server/import/process-order.ts'
import { tempFolder } from '../../support/folder.ts'
import { fake } from '../../support/fake.ts'

const cwd = tempFolder()
mkdirSync(path.join(cwd, 'dist'))
writeFileSync(path.join(cwd, 'dist', 'server.js'), '')

function flagsOf (words: string[], file: string = '/usr/bin/node') {
  return flagsOfProcess(fake({ pid: 7, words, file, cwd }), (script, folder) => lookUpScript(script, folder, ''))
}

test('what a process runs is read from its command line: the file, its arguments and the options of Node, or a command of another language', () => {
  const entry = path.join(cwd, 'dist/server.js')
  assert.deepEqual(flagsOf(['node', 'dist/server.js']), { entry })
  assert.deepEqual(
    flagsOf(['/usr/bin/node', '--max-old-space-size=512', '-r', './x.cjs', 'dist/server.js', '--port', '80']),
    { entry, args: ['--port', '80'], execArgv: ['--max-old-space-size=512', '-r', './x.cjs'] }
  )
  assert.deepEqual(flagsOf(['/venv/bin/python3', '-m', 'uvicorn', 'app:app'], '/usr/bin/python3.12'), {
    entry: '/venv/bin/python3',
    args: ['-m', 'uvicorn', 'app:app']
  })
  assert.deepEqual(flagsOf(['./server'], '/srv/server'), { entry: './server' })
})

test('a command line that does not tell what it runs is refused, with the way out', () => {
  for (const [words, file] of [[['next-server (v15.1.0)']], [['node']], [['node', 'gone.js']], [['node', '-e',
    'serve()']], [['gunicorn: master [app:app]'], '/usr/bin/python3'], [['']]] as [string[], string?][])
  {
    assert.throws(() => flagsOf(words, file), { code: 'not-possible',
      message:
        /^the command line of process 7 does not tell what it runs \(.*\): write what it is into a clusterdeck\.config\.mjs in its folder/ })
  }
})

test('where a command line does not tell, the script "start" of the folder counts', (t) => {
  writeFileSync(path.join(cwd, 'package.json'), '{ "scripts": { "start": "next start" } }')
  t.after(() => rmSync(path.join(cwd, 'package.json')))
  assert.deepEqual(flagsOf(['next-server (v15.1.0)']), {})
})

test('of the variables of a process those are taken that are meant for the app', () => {
  const env = { PORT: '80', NODE_OPTIONS: '--no-warnings', PATH: '/bin', NODE_UNIQUE_ID: '1', NODE_CHANNEL_FD: '3',
    INVOCATION_ID: 'x', NOTIFY_SOCKET: '/run/x', LISTEN_FDS: '1', CLUSTERDECK_TOKEN: 'x', SUDO_USER: 'joe',
    _: '/bin/node' }
  assert.deepEqual(variablesOfProcess(fake({ env })), { PORT: '80', NODE_OPTIONS: '--no-warnings', PATH: '/bin' })
})
