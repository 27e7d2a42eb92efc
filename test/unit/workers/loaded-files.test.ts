import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import path from 'node:path'
import { describe, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { tempFolder, writeFiles } from '../../support/folder.ts'

const MODULE = new URL('../../../workers/loaded-files.ts', import.meta.url).href
const PRELUDE = `
import { createRequire } from 'node:module'
import { listLoadedFiles, tellLoadedFiles } from ${JSON.stringify(MODULE)}
const require = createRequire(import.meta.url)
// The source under test is not where it is in an installation.
const say = (value) => console.log(JSON.stringify(value, (_, each) => Array.isArray(each) ? each.filter((file) => file !== '${
  fileURLToPath(MODULE)
}') : each))
`

/**
 * Runs an app of these files in a process of its own. `files`: `app.js` is its entry, or preloaded where there is
 * another.
 * @returns each line that it has said, without the folder
 */
function run (files: Record<string, string>, execArgv: string[] = [],
  entry: string = 'app.js'): { folder: string, said: (string[] & { files: string[] })[] }
{
  const folder = tempFolder()
  writeFiles(folder, { 'package.json': '{ "type": "module" }', ...files, 'app.js': PRELUDE + files['app.js'] })
  const preload = entry === 'app.js' ? [] : ['--import', path.join(folder, 'app.js')]
  const output = execFileSync(process.execPath, [...execArgv, ...preload, path.join(folder, entry)], { encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'ignore'] })
  return { folder,
    said: output.trim().split('\n').map((line) => JSON.parse(line.replaceAll(`${folder}${path.sep}`, ''))) }
}

describe('the files that a process has loaded', () => {
  test('are its CommonJS and ES modules, JSON and what its packages are made of', () => {
    const { said: [files] } = run({ 'app.js': `
        await import('./lazy.js')
        import './imports.js'
        require('./required.cjs')
        say(listLoadedFiles().sort())
      `,
      'imports.js':
        'import "./deep/constant.js"\nimport "./imported.json" with { type: "json" }\nimport "pkg"\nexport function one () {}',
      'deep/constant.js': 'export const one = 1', 'lazy.js': 'export default 1',
      'required.cjs': 'require("./required.json"); exports.one = 1', 'imported.json': '{}', 'required.json': '{}',
      'not-loaded.js': '', 'node_modules/pkg/package.json': '{ "main": "index.js" }',
      'node_modules/pkg/index.js': 'exports.one = 1' })
    assert.deepEqual(files, ['app.js', 'deep/constant.js', 'imported.json', 'imports.js', 'lazy.js',
      'node_modules/pkg/index.js', 'required.cjs', 'required.json'])
  })

  test('stay known when what they have defined is gone', () => {
    const { said: [files] } = run({ 'app.js': `
        import './gone.js'
        for (let n = 0; n < 6; n++) {
          globalThis.gc()
          await new Promise((resolve) => setTimeout(resolve, 5))
        }
        say(listLoadedFiles())
      `, 'gone.js': 'export {}' }, ['--expose-gc'])
    assert.ok(files.includes('gone.js'))
  })

  test('are not what code calls itself, nor code without a file', () => {
    const { said: [files] } = run({ 'app.js': `
        eval('1 //# sourceURL=/etc/passwd')
        new Function('//# sourceURL=file:///%00')()
        require('node:vm').runInThisContext('1', { filename: 'relative.js' })
        await import('data:text/javascript,export default 1')
        debugger
        say(listLoadedFiles())
      ` })
    assert.deepEqual(files, ['app.js'])
  })

  test('are those of require alone where a process may not look into itself', () => {
    const flag = ['--permission', '--experimental-permission'].find((each) =>
      process.allowedNodeEnvironmentFlags.has(each)
    )
    const { said: [files] } = run({ 'app.js': 'require("./required.cjs"); say(listLoadedFiles())', 'required.cjs': '' },
      [String(flag), '--allow-fs-read=*'])
    assert.deepEqual(files.sort().filter((file: string) => !path.isAbsolute(file)), ['app.js', 'required.cjs'])
  })

  test('are told in the turn after the app has begun, and what comes later alone', () => {
    const { said } = run({ 'app.js': `
        const isWaiting = setInterval(() => {}, 1000)
        const send = (message) => {
          say(message)
          if (message.files.includes(import.meta.dirname + '/later.js')) clearInterval(isWaiting)
        }
        const { begin } = tellLoadedFiles({ send }, 'often')
        begin()
        begin()
        setTimeout(() => import('./later.js'), 100)
      `, 'later.js': '' })
    assert.deepEqual(said, [{ type: 'files', files: ['app.js'] }, { type: 'files', files: ['later.js'] }])
  })

  for (const [main, pace, told] of [['main.cjs', 'rarely', ['main.cjs', 'required.cjs']], ['main.cjs', 'often', [
    'app.js',
    'imported.js',
    'main.cjs',
    'required.cjs'
  ]], ['main.js', 'rarely', ['app.js', 'imported.js', 'main.js', 'required.cjs']]] as const) {
    test(`are ${told.length === 2 ? 'at first those of require' : 'all told at once'} where ${main} is run and they are looked for ${pace}`, () => {
      const load = 'import("./imported.js").then(() => globalThis.begin())'
      const { said: [{ files }] } = run({
        'app.js': `globalThis.begin = tellLoadedFiles({ send: say }, '${pace}').begin`,
        'main.cjs': `require('./required.cjs'); ${load}`,
        'main.js': `import './required.cjs'; ${load}`,
        'required.cjs': '',
        'imported.js': ''
      }, [], main)
      assert.deepEqual(files.sort(), told)
    })
  }

  test('are told by nobody who need not', () => {
    const { said } = run({
      'app.js': 'tellLoadedFiles({ send: say }, \'off\').begin(); setImmediate(() => say(\'end\'))'
    })
    assert.deepEqual(said, ['end'])
  })

  test('are at most 10,000, those of the app first', () => {
    const { said: [all] } = run({ 'app.js': `
        for (let n = 0; n < 10_000; n++) require.cache['/srv/node_modules/pkg/' + n + '.js'] = { exports: {} }
        require.cache['/srv/own.js'] = { exports: {} }
        tellLoadedFiles({ send: ({ files }) => say([files.length, files.includes('/srv/own.js')]) }, 'rarely').begin()
      ` })
    assert.deepEqual(all, [10_000, true])
  })
})
