#!/usr/bin/env node
// Old versions of Node read this file too, from 14 on: see run-on.js.
import { fileURLToPath } from 'node:url'
import { isNewEnough } from './node-needed.js'

if (isNewEnough(process.versions.node)) await import('./run-here.js')
else {
  const { runOnNewNode, TYPED_VARIABLE } = await import('./run-on.js')
  runOnNewNode(fileURLToPath(import.meta.url), process.argv.slice(2), { [TYPED_VARIABLE]: process.execPath })
}
