// What npm runs in a clone after it has installed the packages: it installs the Node of build/node where the one of the machine is too old, and makes the bundle by it.
import { execFileSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { isNewEnough } from '../server/node-needed.js'
import { findNode } from '../server/run-on.js'

const FOLDER = fileURLToPath(new URL('node', import.meta.url))
const BUNDLE = fileURLToPath(new URL('bundle.js', import.meta.url))
/** They say where the outer npm installs, and what. */
const OF_THE_OUTER = /^npm_config_(?:global|location|prefix|local_prefix|workspaces?|omit|include|save.*|ignore_scripts)$/i

try {
  const isNew = isNewEnough(process.versions.node)
  if (!isNew && findNode({}) === null) installNode()
  execFileSync(isNew ? process.execPath : findNode(process.env) ?? process.execPath, [BUNDLE], { stdio: 'inherit' })
} catch {
  // The program has said why.
  process.exitCode = 1
}

function installNode () {
  const { npm_execpath: npm = '' } = process.env
  const [program, ...words] = [...npm.endsWith('npm-cli.js') ? [process.execPath, npm] : ['npm'], 'ci', '--prefix', FOLDER]
  execFileSync(program, words, { cwd: FOLDER, env: Object.fromEntries(Object.entries(process.env).filter(([name]) => !OF_THE_OUTER.test(name))), stdio: 'inherit' })
}
