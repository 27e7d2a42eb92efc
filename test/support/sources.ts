import { mkdirSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { tempFolder } from './folder.ts'

const APP = `
import http from 'node:http'
import { createRequire } from 'node:module'
import { nested } from './lib/nested.js'
const { required } = createRequire(import.meta.url)('./lib/required.cjs')
http.createServer((request, response) => response.end(JSON.stringify({ nested, required }))).listen(0)
`

/** An app of three files that a test may edit: it answers with what the two below `lib` export. */
export function createSources () {
  const folder = tempFolder()
  mkdirSync(path.join(folder, 'lib'))
  writeFileSync(path.join(folder, 'package.json'), '{ "type": "module" }')
  const app = path.join(folder, 'app.js')
  writeFileSync(app, APP)
  const sources = {
    folder,
    app,
    /** `name`: an ES module, a CommonJS one. Returns the file. */
    write (name: 'nested' | 'required', value: number | string): string {
      const [file, text] = name === 'nested'
        ? ['nested.js', 'export const nested']
        : ['required.cjs', 'exports.required']
      writeFileSync(path.join(folder, 'lib', file), `${text} = ${value}\n`)
      return path.join(folder, 'lib', file)
    }
  }
  sources.write('nested', 1)
  sources.write('required', 1)
  return sources
}
