import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdirSync, rmSync, utimesSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { beforeEach, describe, test } from 'node:test'
import { pathToFileURL } from 'node:url'
import { ownCode } from '../../server/own-code.js'
import { tempFolder } from '../support/folder.ts'

describe('our own code is taken', () => {
  let folder: string

  beforeEach(() => {
    folder = tempFolder()
  })

  test('without what Node loads for those who import its parts', () => {
    const loaded = ['own-code.js', 'compile-cache.js'].map((file) =>
      `await import(${JSON.stringify(new URL(`../../server/${file}`, import.meta.url).href)})`
    )
    const code = `${
      loaded.join('\n')
    }\nconsole.log(process.moduleLoadList.includes('NativeModule internal/fs/streams'))`
    assert.equal(execFileSync(process.execPath, ['--input-type=module', '-e', code], { encoding: 'utf8' }), 'false\n')
  })

  test('from the bundle while the sources are those that it was made of', () => {
    install(folder)
    assert.deepEqual(ownCode(urlOf(folder)), { name: 'abc', folder: new URL('dist/abc/', urlOf(folder)) })
  })

  for (const what of ['missing', 'longer', 'newer', 'gone']) {
    test(`from a bundle that is built anew where a source is ${what}`, () => {
      install(folder, what === 'gone' ? { sources: { 'server/gone.js': 1 } } : {})
      if (what === 'missing') rmSync(path.join(folder, 'dist'), { recursive: true })
      if (what === 'longer') writeKept(path.join(folder, 'server/a.js'), 'longer than it was')
      if (what === 'newer') utimesSync(path.join(folder, 'server/b.js'), new Date(), new Date(Date.now() + 10_000))
      mkdirSync(path.join(folder, 'node_modules/rolldown'), { recursive: true })
      mkdirSync(path.join(folder, 'build'))
      writeFileSync(path.join(folder, 'build/bundle.ts'), `
        const { mkdirSync, writeFileSync } = require('node:fs')
        mkdirSync(__dirname + '/../dist', { recursive: true })
        writeFileSync(__dirname + '/../dist/bundle.json', '{"name":"def","sources":{}}')
      `)
      assert.equal(ownCode(urlOf(folder))?.name, 'def')
    })
  }

  test('from the bundle of an installed package, whatever times its files have', () => {
    folder = path.join(folder, 'node_modules', 'clusterdeck')
    install(folder)
    utimesSync(path.join(folder, 'server', 'a.js'), new Date(), new Date(Date.now() + 10_000))
    assert.equal(ownCode(urlOf(folder))?.name, 'abc')
  })
})

function urlOf (folder: string): URL {
  return pathToFileURL(folder + path.sep)
}

function install (folder: string,
  { sources = { 'server/a.js': 1, 'server/b.js': 1 } }: { sources?: Record<string, number> } = {})
{
  for (const each of ['server', 'dist']) mkdirSync(path.join(folder, each), { recursive: true })
  for (const file of ['server/a.js', 'server/b.js']) writeKept(path.join(folder, file), '1')
  writeFileSync(path.join(folder, 'dist', 'bundle.json'), JSON.stringify({ name: 'abc', sources }))
}

/** As old as it would be long after. */
function writeKept (file: string, text: string) {
  writeFileSync(file, text)
  utimesSync(file, new Date(0), new Date(0))
}
