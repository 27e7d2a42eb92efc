// Runs a script of ours by a Node that is new enough: node build/run.js SCRIPT …
import path from 'node:path'
import { isNewEnough } from '../server/node-needed.js'
import { runOnNewNode } from '../server/run-on.js'

const [script, ...args] = process.argv.slice(2)
const file = path.resolve(script)
if (isNewEnough(process.versions.node)) {
  process.argv.splice(1, 2, file)
  await import(file)
} else runOnNewNode(file, args)
