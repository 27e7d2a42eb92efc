import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { copyFileSync, cpSync, existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, symlinkSync,
  writeFileSync } from 'node:fs'
import path from 'node:path'
import { before, describe, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { startReady } from '../support/deck.ts'
import { tempFolder } from '../support/folder.ts'
import { linkPackages, startAndStop } from '../support/install.ts'
import { rareOnly, rareTest } from '../support/rare.ts'
import { until } from '../support/until.ts'

const ROOT = fileURLToPath(new URL('../../', import.meta.url))
const FOLDERS = ['ci', 'db', 'dist', 'server', 'types', 'workers']
const PATIENCE_MS = 60_000
/** Of the heap of a master with one app; with the site it takes 30 MB. */
const WITHOUT_SITE_BYTES = 17_000_000
const HOURS_PASS = path.join(ROOT, 'test', 'fixtures', 'hours-pass-quickly.cjs')
/** What is under one of these may be given to anybody, with its text. */
const FREE = new Set(['Apache-2.0', 'BSD-0-Clause', 'BSD-3-Clause', 'BlueOak-1.0.0', 'ISC', 'MIT', 'MIT-0', 'Unlicense',
  '0BSD'])
const run = promisify(execFile)
const { PORT: _, ...env } = process.env

describe('the package that npm packs', () => {
  const folder = tempFolder()
  const installed = path.join(folder, 'node_modules', 'clusterdeck')
  const bin = path.join(folder, 'node_modules', '.bin', 'clusterdeck')

  before(async () => {
    const { stdout } = await run('npm', ['pack', '--json', '--silent', '--pack-destination', folder], { cwd: ROOT,
      timeout: PATIENCE_MS })
    await run('tar', ['-xzf', JSON.parse(stdout)[0].filename], { cwd: folder })
    mkdirSync(path.dirname(bin), { recursive: true })
    renameSync(path.join(folder, 'package'), installed)
    linkPackages(installed)
    symlinkSync(
      path.join(installed, JSON.parse(readFileSync(path.join(installed, 'package.json'), 'utf8')).bin.clusterdeck),
      bin
    )
    copyFileSync(path.join(ROOT, 'test', 'fixtures', 'answers-with-pid.js'), path.join(folder, 'app.js'))
    writeFileSync(path.join(folder, 'package.json'), '{ "type": "module" }')
  })

  test('holds every file of the program, the types of the library, and nothing else', () => {
    const names = readdirSync(installed).filter((name) => name !== 'node_modules').sort()
    assert.deepEqual(names, ['CHANGELOG.md', 'LICENSE', 'README.md', 'action.yml', ...FOLDERS, 'package.json'].sort())
    for (const name of ['ci', 'dist', 'db/migrations', 'workers/demo']) {
      assert.deepEqual(filesOf(path.join(installed, name)), filesOf(path.join(ROOT, name)).filter((file) =>
        !/\.(d\.ts|md)$|\/pages\//.test(file)
      ), name)
    }
    const beside = ['server', 'db', 'workers'].flatMap((name) =>
      filesOf(path.join(installed, name)).map((file) => `${name}/${file}`).filter((file) =>
        !/^(db\/migrations|workers\/demo)\//.test(file)
      )
    )
    assert.deepEqual(beside,
      ['cli', 'compile-cache', 'node-needed', 'own-code', 'run-here', 'run-on'].map((name) => `server/${name}.js`))
    assert.deepEqual(filesOf(path.join(installed, 'types')), ['errors.d.ts', 'index.d.ts', 'library/records.d.ts',
      'library/types.d.ts'])
  })

  rareTest('runs the example of the manual, which reads nothing that it was not told to, and ends by itself',
    async () => {
      writeFileSync(path.join(folder, 'run.mjs'), example())
      writeFileSync(path.join(folder, 'clusterdeck.config.json'), '{ "workers": 7 }')
      const { stdout, stderr } = await run(process.execPath, ['run.mjs'], { cwd: folder,
        env: { ...env, CLUSTERDECK_WORKERS: '6', CLUSTERDECK_DISPATCH: 'none' }, timeout: PATIENCE_MS })
      const lines = stdout.trimEnd().split('\n')
      assert.match(lines[0], /^2 workers, http:\/\/127\.0\.0\.1:\d+$/)
      assert.deepEqual(lines.slice(1).sort(), ['restart succeeded', 'slot 1: restart', 'slot 1: shutdown',
        'slot 2: restart', 'slot 2: shutdown'])
      assert.equal(stderr, '')
    })

  for (const [compiler, rare] of [['typescript-7', false], ['typescript', rareOnly]] as const) {
    test(`types every part of the library for a strict program, and refuses wrong uses: ${compiler}`, { skip: rare },
      async () => {
        cpSync(path.join(ROOT, 'test', 'library'), folder, { recursive: true })
        mkdirSync(path.join(folder, 'node_modules', '@types'), { recursive: true })
        const types = path.join(folder, 'node_modules', '@types', 'node')
        if (!existsSync(types)) symlinkSync(path.join(ROOT, 'node_modules', '@types', 'node'), types)
        await compile(compiler, folder)
      })
  }

  rareTest('has the types of the code, and thus of the API and the options', async () => {
    await compile('typescript-7', path.join(ROOT, 'test', 'library', 'code'))
  })

  rareTest('has a command that starts the app, and one that stops it', async () => {
    const dataDir = path.join(folder, 'data')
    // The command takes the Node that is first there, and a package brings none.
    const withNode = { ...env, PATH: `${path.dirname(process.execPath)}:${process.env.PATH}` }
    const options = { cwd: folder, env: withNode }
    await startAndStop(`exec '${bin}' start app.js --workers 1 --admin-port 0 --data-dir '${dataDir}'`, options,
      () => run(bin, ['stop', '--data-dir', dataDir], options))
  })

  test('a master that runs goes on with its pages once another version is in its place, and lets go of what is behind them', async (t) => {
    const copy = path.join(tempFolder(), 'node_modules', 'clusterdeck')
    cpSync(installed, copy, { recursive: true, verbatimSymlinks: true })
    const heapFile = path.join(tempFolder(), 'heap')
    const deck = await startReady(t, 'answers-with-pid.js', { cli: path.join(copy, 'server', 'cli.js'), workers: 1,
      flags: ['--no-keeper'], launch: { execArgv: ['--require', HOURS_PASS] }, env: { HEAP_FILE: heapFile } })
    const ask = (url: string) =>
      fetch(`${deck.adminUrl}${url}`, {
        headers: { Authorization: `Bearer ${deck.token}`, Connection: 'close', Cookie: 'theme=dark' }
      })
    const heap = () => Number(readFileSync(heapFile, 'utf8'))
    deck.close()
    rmSync(path.join(copy, 'dist'), { recursive: true })
    for (let visit = 1; visit <= 3; visit++) {
      const page = await (await ask('/docs/limits')).text()
      const assets = [...page.matchAll(/"(\/assets\/[^"]+)"/g)].map(([, url]) => url)
      assert.ok(assets.length > 2)
      const answers = await Promise.all([...assets, '/', '/checks', '/api/v1/status'].map(ask))
      assert.deepEqual(answers.map(({ status }) => status), answers.map(() => 200))
      await until(() => heap() < WITHOUT_SITE_BYTES, () => `visit ${visit} has left ${heap()} bytes`)
    }
  })

  test('says which packages are inside, each as it is in the lock file, and under which licence', () => {
    const { packages } = JSON.parse(readFileSync(path.join(ROOT, 'package-lock.json'), 'utf8'))
    const inside = [
      ...readFileSync(path.join(installed, 'dist', 'licences.txt'), 'utf8').matchAll(
        /^((?:@[\w.-]+\/)?[\w.-]+) (\d\S*): (.+)$/gm
      )
    ]
    assert.ok(inside.some(([, name]) => name === 'express'))
    assert.deepEqual(
      inside.filter(([, name, version]) =>
        !Object.entries<{ version: string }>(packages).some(([place, locked]) =>
          place.endsWith(`node_modules/${name}`) && locked.version === version
        )
      ).map(([line]) => line),
      []
    )
    assert.deepEqual(inside.filter(([, , , licence]) => !FREE.has(licence)).map(([line]) => line), [])
  })

  test('keeps its inner files to itself', async () => {
    const inner = run(process.execPath, ['--input-type=module', '--eval', 'await import("clusterdeck/server/cli.js")'],
      { cwd: folder, env })
    await assert.rejects(inner, ({ stderr }) => stderr.includes('ERR_PACKAGE_PATH_NOT_EXPORTED'))
    assert.ok(existsSync(path.join(installed, 'server', 'cli.js')))
  })
})

async function compile (compiler: string, project: string) {
  const compiled = run(process.execPath, [path.join(ROOT, 'node_modules', compiler, 'bin', 'tsc'), '-p', project], {
    timeout: PATIENCE_MS
  })
  await compiled.catch(({ stdout }) => assert.fail(stdout))
}

/** The first program on the page of the library. */
function example () {
  const text = readFileSync(path.join(ROOT, 'views', 'docs', 'library.md'), 'utf8')
  const [program] = text.match(/^ {4}\/\/ run\.mjs\n(?: {4}.*\n|\n(?= {4}))+/m) ?? ['']
  return program.replace(/^ {4}/gm, '')
}

function filesOf (folder: string): string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile()).map((entry) =>
    path.relative(folder, path.join(entry.parentPath, entry.name))
  ).filter((file) => !file.includes('node_modules')).sort()
}
