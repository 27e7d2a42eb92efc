import assert from 'node:assert/strict'
import { chmodSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { describe, test } from 'node:test'
import { pathToFileURL } from 'node:url'
import { movedTo, resolveLaunch, type Wish } from '../../../server/launch/launch.ts'
import { shownWords } from '../../../server/launch/shell-words.ts'
import { tempFolder } from '../../support/folder.ts'
import { assertRetold } from '../../support/golden.ts'
import type { DeckError } from '../../../server/errors.ts'

const NODE_SCRIPT = '#!/usr/bin/env node\n'
const PACKAGE = { name: 'shop', version: '1.2.3', main: 'app.js', config: { port: 8080 } }
/** As pnpm writes it. */
const SHIM = `#!/bin/sh
basedir=$(dirname "$(echo "$0" | sed -e 's,\\\\,/,g')")
if [ -z "$NODE_PATH" ]; then
  export NODE_PATH="/store/node_modules"
else
  export NODE_PATH="/store/node_modules:$NODE_PATH"
fi
if [ -x "$basedir/node" ]; then
  exec "$basedir/node"  "$basedir/../next/dist/bin/next" "$@"
else
  exec node  "$basedir/../next/dist/bin/next" "$@"
fi
`

/** `files`: by path; objects become JSON */
function write (files: Record<string, string | object>, folder: string = tempFolder()) {
  for (const [name, content] of Object.entries(files)) {
    const file = path.join(folder, name)
    mkdirSync(path.dirname(file), { recursive: true })
    writeFileSync(file, typeof content === 'string' ? content : JSON.stringify(content))
  }
  return folder
}

/** An installed package with a command, and the link to that. */
function install (folder: string, name: string,
  { text = NODE_SCRIPT, command = name.replace(/^@.*\//, '') }: { text?: string, command?: string } = {})
{
  const file = 'dist/cli'
  write({ 'package.json': { name, version: '1.0.0', bin: { [command]: file } }, [file]: text },
    path.join(folder, 'node_modules', name))
  mkdirSync(path.join(folder, 'node_modules/.bin'), { recursive: true })
  symlinkSync(path.join('..', name, file), path.join(folder, 'node_modules/.bin', command))
}

/** `programs`: by path, which may be executed */
function withPrograms (programs: Record<string, string>, folder: string = tempFolder()) {
  write(programs, folder)
  for (const name of Object.keys(programs)) chmodSync(path.join(folder, name), 0o755)
  return folder
}

function appWith (scripts: Record<string, string>, files: Record<string, string | object> = {}) {
  const folder = write({ 'package.json': { ...PACKAGE, scripts }, 'app.js': '', ...files })
  for (const name of ['next', 'http-server']) install(folder, name)
  return folder
}

function launch (cwd: string, wish: Omit<Wish, 'cwd'>, surroundings?: Parameters<typeof resolveLaunch>[1]) {
  return resolveLaunch({ cwd, ...wish }, { env: { PATH: '/usr/bin' }, stripsTypes: false, ...surroundings })
}

/** The words of a node process, and the variables that a script sets. */
function shown (cwd: string, { entry, args, execArgv, env }: ReturnType<typeof launch>) {
  const variables = Object.entries(env).filter(([name]) => !/^(npm_|PATH$)/.test(name)).map(([name, value]) =>
    `${name}=${value}`
  )
  return [...variables, 'node', ...execArgv, path.relative(cwd, entry), ...args].join(' ')
}

/** What the script `it` of the app becomes, or why it is refused, and what is said of it. */
function told (cwd: string, script: string, env: Record<string, string>) {
  write({ 'package.json': { ...PACKAGE, scripts: { it: script, other: 'node app.js other' } } }, cwd)
  const wishes = [{ script: 'it' }, { entry: 'npm', args: ['run', 'it'] }]
  const [first, second] = wishes.map((wish) => {
    try {
      const found = launch(cwd, wish, { env })
      const words = found.runtime === 'node'
        ? shown(cwd, found)
        : `run as it is: ${shownWords([path.basename(found.entry), ...found.args])}`
      return [words, ...found.notes].join('; ')
    } catch (error) {
      const { details, message } = error as DeckError
      return `refused, ${details?.reason}: ${message}`
    }
  }).map((text) => text.replaceAll(cwd, '.'))
  if (!first.startsWith('refused')) assert.equal(second, first)
  return first
}

describe('what a script runs', () => {
  test('is what it would run by itself, without what only starts it', async () => {
    const cwd = appWith({}, { '.env': 'FROM_FILE=yes', '.env.more': '', 'src/main.ts': '', 'dist/main.js': '',
      '.output/server/index.mjs': '', 'sub/package.json': { scripts: { serve: 'node ../app.js sub' } },
      'sub/server.js': '', 'linked/package.json': { scripts: { serve: 'node ../app.js linked' } },
      'node_modules/tsx/package.json': {}, 'node_modules/ts-node/package.json': {},
      'node_modules/unlinked/package.json': { name: 'unlinked', bin: 'cli.js' },
      'node_modules/unlinked/cli.js': NODE_SCRIPT })
    symlinkSync('../linked', path.join(cwd, 'node_modules/linked'))
    install(cwd, '@scope/tool', { command: 'tool-of-scope' })
    install(cwd, 'with-options', { text: '#!/usr/bin/env -S node --no-warnings\n' })
    await assertRetold(import.meta, 'scripts', (script) => told(cwd, script, { PATH: '/usr/bin' }))
  })

  test('is run as it is, or refused, where nothing else is there, and what else could be done is said', async () => {
    const PATH = withPrograms({ node: NODE_SCRIPT, env: '\x7fELF\0', doppler: '\x7fELF\0', pnpm: NODE_SCRIPT })
    const cwd = appWith({}, { '.env': 'A=$B' })
    for (const name of ['react-scripts', 'nuxt', 'concurrently', 'dotenv']) install(cwd, name)
    for (const name of ['next', 'react-scripts', 'nuxt', 'concurrently', 'dotenv'])
      chmodSync(path.join(cwd, 'node_modules', name, 'dist/cli'), 0o755)
    await assertRetold(import.meta, 'strange-scripts', (script) => told(cwd, script, { PATH }))
  })

  test('takes a shell with its arguments, and sees the commands of its packages', () => {
    const cwd = appWith({ it: 'node app.js > log' })
    const { entry, args, env } = launch(cwd, { script: 'it', args: ['a b'] })
    assert.deepEqual([entry, args], ['/bin/sh', ['-c', 'node app.js > log \'a b\'']])
    assert.match(env.PATH, /node_modules\/\.bin/)
  })

  test('it runs in the folder of its package.json, and sees what a package manager tells it', () => {
    const cwd = appWith({ serve: 'http-server' })
    const inside = path.join(cwd, 'src')
    mkdirSync(inside)
    const { env, cwd: where } = launch(inside, { script: 'serve' })
    assert.equal(where, cwd)
    assert.deepEqual([env.npm_lifecycle_event, env.npm_package_name, env.npm_package_version,
      env.npm_package_config_port, env.npm_package_json], ['serve', 'shop', '1.2.3', '8080',
      path.join(cwd, 'package.json')])
    assert.ok(env.PATH.startsWith(`${path.join(cwd, 'node_modules/.bin')}:`) && env.PATH.endsWith(':/usr/bin'),
      env.PATH)
  })

  test('what it would have done besides is said: pre and post, watching, building', () => {
    const cwd = appWith({ prestart: 'tsc', start: 'nest start', poststart: 'x', dev: 'nodemon app.js' }, {
      'dist/main.js': ''
    })
    assert.deepEqual(launch(cwd, { script: 'dev' }).notes, [
      'it would restart at changes; clusterdeck does with --watch'
    ])
    const { notes } = launch(cwd, { script: 'start' })
    assert.equal(notes.length, 3)
    assert.match(notes.join(' '), /"prestart" is not run.* "poststart" is not run.* run "nest build"/)
  })
})

describe('what is named', () => {
  test('a file is run as it is, and nothing is said', () => {
    const cwd = write({ 'app.js': '', tool: NODE_SCRIPT, bare: 'x' })
    for (const entry of ['app.js', 'app', './app.js', path.join(cwd, 'app.js'), 'tool', 'bare']) {
      const { said, env, execArgv, args } = launch(cwd, { entry, args: ['a'], execArgv: ['--inspect'] })
      assert.deepEqual([said, env, execArgv, args], [null, {}, ['--inspect'], ['a']], entry)
    }
  })

  test('a file comes before a program of the same name, a program before nothing', () => {
    const cwd = appWith({})
    assert.equal(launch(cwd, { entry: 'next', args: ['start'] }).entry, path.join(cwd, 'node_modules/.bin/next'))
    write({ 'next.js': '' }, cwd)
    assert.equal(launch(cwd, { entry: 'next', args: ['start'] }).entry, path.join(cwd, 'next.js'))
  })

  test('a word is a program of PATH, as for a shell, where a file of that name is none of Node, or a folder of that name has no app', () => {
    const bin = write({ java: '\x7fELF\0', shop: '\x7fELF\0', tool: '\x7fELF\0', own: '\x7fELF\0' }, tempFolder())
    const cwd = write({ 'java/Server.java': '', tool: '\x7fELF\0', 'shop/index.js': '', own: NODE_SCRIPT })
    for (const file of [...['java', 'shop', 'tool', 'own'].map((name) => path.join(bin, name)), path.join(cwd, 'tool')])
      chmodSync(file, 0o755)
    const [found, own] = [(entry: string) => launch(cwd, { entry, args: ['Server'] }, { env: { PATH: bin } }).entry,
      (name: string) => path.join(cwd, name)]
    assert.deepEqual(['java', 'tool', './tool', 'shop', 'own'].map(found), [path.join(bin, 'java'),
      path.join(bin, 'tool'), own('tool'), own('shop/index.js'), own('own')])
    assert.equal(launch(cwd, { entry: 'tool' }, { env: {} }).entry, own('tool'), 'there is no other')
    assert.throws(() => launch(cwd, { entry: 'java' }, { env: {} }), { code: 'entry-not-found',
      message: /java, which is none/ })
    assert.deepEqual(['java', 'shop'].map((entry) => movedTo('/next', { entry, cwd, folder: cwd }).entry), ['java',
      '.'])
  })

  test('a program is found upwards from the folder, and in PATH', () => {
    const root = appWith({}, { 'apps/web/package.json': {} })
    const global = tempFolder()
    write({ served: NODE_SCRIPT, native: '\0ELF' }, global)
    const cwd = path.join(root, 'apps/web')
    assert.equal(shown(root, launch(cwd, { entry: 'next', args: ['start'] })), 'node node_modules/.bin/next start')
    assert.equal(launch(cwd, { entry: 'served' }, { env: { PATH: `/nowhere:${global}` } }).entry,
      path.join(global, 'served'))
    assert.throws(() => launch(cwd, { entry: 'native' }, { env: { PATH: global } }), { code: 'invalid-config',
      details: { reason: 'not-executable' } })
  })

  test('a script for a shell in node_modules/.bin leads to the program', () => {
    const cwd = write({ 'node_modules/next/package.json': {}, 'node_modules/next/dist/bin/next': NODE_SCRIPT,
      'node_modules/.bin/next': SHIM })
    chmodSync(path.join(cwd, 'node_modules/.bin/next'), 0o755)
    for (const entry of ['next', 'node_modules/.bin/next']) {
      assert.equal(shown(cwd, launch(cwd, { entry, args: ['start'] })),
        'NODE_PATH=/store/node_modules node node_modules/next/dist/bin/next start', entry)
    }
  })

  test('a folder is its main file, else its start script, else its command, else its index', () => {
    const cwd = write({ 'main/package.json': { main: 'lib', scripts: { start: 'node other.js' } },
      'main/lib/index.js': '',
      'start/package.json': { main: 'absent.js', bin: 'cli.js', scripts: { start: 'node server.js' } },
      'start/server.js': '', 'start/cli.js': '',
      'bin/package.json': { name: '@us/bin', bin: { bin: 'cli.js', other: 'other.js' } }, 'bin/cli.js': NODE_SCRIPT,
      'bin/other.js': '', 'index/index.js': '' })
    for (const [entry, expected, where] of [['main', 'main/lib/index.js', cwd], ['./start', 'start/server.js',
      path.join(cwd, 'start')], ['bin', 'bin/cli.js', cwd], ['index', 'index/index.js', cwd]])
    {
      const found = launch(cwd, { entry })
      assert.deepEqual([path.relative(cwd, found.entry), found.cwd], [expected, where], entry)
    }
    assert.equal(launch(path.join(cwd, 'start'), {}).said, 'start → node server.js')
    assert.throws(() => launch(cwd, {}), { code: 'entry-not-found' })
  })

  test('what was made of it is one line, without the values of variables', () => {
    const cwd = appWith({ serve: 'NODE_ENV=production TOKEN=secret next start' })
    assert.equal(launch(cwd, { entry: 'npm', args: ['run', 'serve', '--', '--port', '3000'] }).said,
      'npm run serve -- --port 3000 → NODE_ENV=production TOKEN=… node node_modules/next/dist/cli start --port 3000')
    assert.equal(launch(cwd, { entry: 'node_modules/.bin/next', args: ['start'] }).said,
      'node_modules/.bin/next start → node node_modules/next/dist/cli start')
  })
})

describe('TypeScript', () => {
  const bare = () => write({ 'package.json': {}, 'main.ts': '', 'view.tsx': '' })
  const refused = { code: 'invalid-config', details: { reason: 'typescript' },
    message: /Node 22\.18 or later, install tsx/ }

  test('is run by Node where that can, else by tsx where the app has it, else refused with both', () => {
    const cwd = bare()
    assert.deepEqual(launch(cwd, { entry: 'main.ts' }, { stripsTypes: 'strip' }).execArgv, [])
    assert.throws(() => launch(cwd, { entry: 'main.ts' }), refused)
    assert.throws(() => launch(cwd, { entry: 'view.tsx' }, { stripsTypes: 'strip' }), refused)
    write({ 'node_modules/tsx/package.json': {} }, cwd)
    const { execArgv, said } = launch(cwd, { entry: 'main.ts', execArgv: ['--inspect'] })
    assert.deepEqual([execArgv, said], [['--import', 'tsx', '--inspect'],
      'main.ts → node --import tsx --inspect main.ts'])
  })

  test('a loader that was named is left alone', () => {
    const cwd = bare()
    for (const execArgv of [['-r', 'ts-node/register'], ['--import=tsx'], ['--experimental-strip-types']]) {
      assert.deepEqual(launch(cwd, { entry: 'main.ts', execArgv }).execArgv, execArgv)
    }
    assert.throws(() => launch(cwd, { entry: 'main.ts', execArgv: ['-r', 'dotenv/config'] }), refused)
  })

  test('tsx of an app that runs in another folder is named by its file', () => {
    const app = bare()
    write({ 'node_modules/tsx/package.json': { exports: { '.': './dist/loader.mjs' } } }, app)
    assert.deepEqual(launch(tempFolder(), { entry: path.join(app, 'main.ts') }).execArgv, ['--import',
      pathToFileURL(path.join(app, 'node_modules/tsx/dist/loader.mjs')).href])
  })
})

describe('what is no Node program', () => {
  test('a program is run as it is, whatever it is written in, by its name, its path or a script', () => {
    const bin = withPrograms({ python3: '\x7fELF\0', bun: '\x7fELF\0' })
    const cwd = withPrograms({ server: '\x7fELF\0', 'run.sh': '#!/bin/sh\n', 'app.py': '#!/usr/bin/env python3\n' },
      write({ 'package.json': { scripts: { it: 'PORT=80 bun run app.ts' } } }))
    const at = (wish: Omit<Wish, 'cwd'>) => {
      const { runtime, entry, args, execArgv } = launch(cwd, wish, { env: { PATH: bin } })
      return [runtime, path.basename(entry), ...args, ...execArgv]
    }
    assert.deepEqual(at({ entry: 'python3', args: ['-m', 'uvicorn', 'app:app'] }), ['other', 'python3', '-m', 'uvicorn',
      'app:app'])
    for (const name of ['server', 'run.sh', 'app.py'])
      assert.deepEqual(at({ entry: `./${name}`, args: ['-v'] }), ['other', name, '-v'])
    assert.deepEqual(at({ script: 'it' }), ['other', 'bun', 'run', 'app.ts'])
    const { env, said } = launch(cwd, { script: 'it' }, { env: { PATH: bin } })
    assert.deepEqual([env.PORT, said], ['80', `the script "it" → ${bin}/bun run app.ts`])
  })

  test('of what runs as it was typed nothing is said', () => {
    const bin = withPrograms({ python3: '\x7fELF\0' })
    const cwd = withPrograms({ server: '\x7fELF\0' })
    for (const wish of [{ entry: './server' }, { entry: 'server', args: ['-v'] }, { entry: 'python3',
      args: ['app.py'] }]) assert.equal(launch(cwd, wish, { env: { PATH: bin } }).said, null)
  })

  test('files of variables that Node would read are read for it, and what is set counts more', () => {
    const bin = withPrograms({ python3: '\x7fELF\0' })
    const cwd = appWith({ it: 'dotenv -e .env -e .more -- python3 app.py' }, { '.env': 'A=1\nB=1',
      '.more': 'A=2\nC=2\nD=2' })
    const { env, execArgv } = launch(cwd, { script: 'it' }, { env: { PATH: bin, D: 'set' } })
    assert.deepEqual([env.A, env.B, env.C, env.D, execArgv], ['1', '1', '2', undefined, []])
  })
})

describe('what cannot be started', () => {
  test('a file that may not be executed says so', () => {
    const cwd = write({ 'app.py': '', 'run.sh': '', tool: '#!/bin/bash\n', native: '\x7fELF\0' })
    for (const entry of ['app.py', 'run.sh', 'tool', 'native']) {
      assert.throws(() => launch(cwd, { entry }), { code: 'invalid-config', details: { reason: 'not-executable' },
        message: /^entry: expected a program, received .*chmod \+x/ })
    }
  })

  test('what is nowhere is one clear error', () => {
    const cwd = tempFolder()
    assert.throws(() => launch(cwd, { entry: 'nix' }), { code: 'entry-not-found',
      message:
        `entry: expected a file, a folder or the name of a program, received nix, which is neither in ${cwd} nor installed there` })
    assert.throws(() => launch(cwd, { entry: './nix' }), { code: 'entry-not-found',
      message: `entry: expected a file, received ${path.join(cwd, 'nix')}, which does not exist` })
    assert.throws(() => launch(cwd, { script: 'x' }), { code: 'invalid-config', message: /needs a package\.json in/ })
  })

  test('a package.json that begins with a byte order mark is one', () => {
    const cwd = write({ 'package.json': `\uFEFF${JSON.stringify({ scripts: { it: 'node app.js' } })}`, 'app.js': '' })
    assert.equal(shown(cwd, launch(cwd, { script: 'it' })), 'node app.js')
  })

  test('what Yarn Plug\'n\'Play has Node load first comes first, once, and only where nobody else has put it', () => {
    const files = { 'package.json': { scripts: { start: 'node app.js', other: 'node -r ./.pnp.cjs app.js' } },
      'app.js': '', '.pnp.cjs': '' }
    const cwd = write(files)
    const pnp = ['--require', path.join(cwd, '.pnp.cjs')]
    for (const wish of [{ entry: 'yarn', args: ['start'] }, { script: 'start' }, {}, { entry: 'app.js' }, {
      entry: 'corepack',
      args: ['yarn', 'node', 'app.js']
    }]) assert.deepEqual(launch(cwd, wish).execArgv, pnp, JSON.stringify(wish))
    assert.match(String(launch(cwd, { entry: 'app.js' }).said), /^app\.js → node --require .*\.pnp\.cjs app\.js$/)
    assert.deepEqual(launch(cwd, { script: 'other' }).execArgv, ['-r', './.pnp.cjs'])
    assert.deepEqual(launch(cwd, { script: 'start' }, { env: { NODE_OPTIONS: `--require ${pnp[1]}` } }).execArgv, [])
    const workspace = path.join(cwd, 'packages/shop')
    write({ 'index.js': '' }, workspace)
    write({ '.pnp.loader.mjs': '' }, cwd)
    assert.deepEqual(launch(workspace, { entry: 'index.js', execArgv: ['--no-warnings'] }).execArgv, [...pnp,
      '--experimental-loader', pathToFileURL(path.join(cwd, '.pnp.loader.mjs')).href, '--no-warnings'])
    chmodSync(path.join(cwd, '.pnp.cjs'), 0o666)
    assert.deepEqual(launch(cwd, { entry: 'app.js' }).execArgv, [])
  })

  test('a command of Yarn Plug\'n\'Play has no file to start', () => {
    const cwd = write({ 'package.json': { scripts: { it: 'next start' } }, '.pnp.cjs': '' })
    assert.throws(() => launch(cwd, { script: 'it' }), { details: { reason: 'not-installed' },
      message: /nodeLinker: node-modules/ })
  })
})

test('a start script that only starts Node for another file is run as a program; one that may listen itself, or has modules of the app, is not', () => {
  const spawns =
    'const { spawn } = require(\'node:child_process\')\nspawn(process.execPath, [require(\'path\').join(__dirname, \'server.js\')])\n'
  const folder = write({ 'start.js': spawns,
    'esm.mjs': 'import { fork } from \'child_process\'\nimport \'dotenv/config\'\nfork(\'server.js\')',
    'serves.js': `${spawns}require('http').createServer().listen(0)`, 'own.js': `${spawns}require('./server')`,
    'job.js': 'require(\'child_process\').spawn(\'pg_dump\')' })
  const runtimes = ['start.js', 'esm.mjs', 'serves.js', 'own.js', 'job.js'].map((entry) =>
    resolveLaunch({ entry, cwd: folder }).runtime
  )
  assert.deepEqual(runtimes, ['other', 'other', 'node', 'node', 'node'])
  const { entry, args } = resolveLaunch({ entry: 'start.js', args: ['a'], execArgv: ['--no-warnings'], cwd: folder })
  assert.deepEqual([entry, args], [process.execPath, ['--no-warnings', path.join(folder, 'start.js'), 'a']])
})
