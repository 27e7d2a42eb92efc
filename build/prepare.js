// What npm runs in a clone after it has installed the packages: it installs the Node of build/node where the one of the
// machine is too old, and makes the bundle by it.
import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { isNewEnough } from '../server/node-needed.js'
import { findNode } from '../server/run-on.js'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const FOLDER = `${ROOT}build/node`
const PACKAGE = `node-${process.platform}-${process.arch}`
/** They say where the outer npm installs, and what. */
const OF_THE_OUTER =
  /^npm_config_(?:dry_run|global|location|prefix|local_prefix|workspaces?|omit|include|save.*|ignore_scripts)$/i

try {
  prepare()
} catch {
  // The program has said why.
  process.exitCode = 1
}

function prepare () {
  if (!existsSync(`${ROOT}node_modules/rolldown`)) {
    console.error(
      `clusterdeck: the packages that build it are not installed. In ${ROOT} run, without --omit=dev: npm ci && npm install --global .`
    )
    process.exitCode = 1
    return
  }
  const isNew = isNewEnough(process.versions.node)
  if (!isNew &&
    installedVersion() !== JSON.parse(readFileSync(`${FOLDER}/package.json`, 'utf8')).optionalDependencies[PACKAGE])
    installNode()
  execFileSync(isNew ? process.execPath : findNode(process.env) ?? process.execPath, [`${ROOT}build/bundle.ts`], {
    stdio: 'inherit'
  })
}

function installedVersion () {
  const file = `${FOLDER}/node_modules/${PACKAGE}/package.json`
  return existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')).version : null
}

function installNode () {
  const { npm_execpath: npm = '' } = process.env
  const [program, ...words] = [...npm.endsWith('npm-cli.js') ? [process.execPath, npm] : ['npm'], 'ci', '--prefix',
    FOLDER, '--no-audit', '--no-fund']
  execFileSync(program, words, { cwd: FOLDER,
    env: Object.fromEntries(Object.entries(process.env).filter(([name]) => !OF_THE_OUTER.test(name))),
    stdio: 'inherit' })
}
