// Installs the better-sqlite3 of Node.js 20 into this folder, as a script of npm. It is no dependency of clusterdeck: npm would then
// compile it for later versions of Node too, which take the one that brings its binaries.
const { execFileSync } = require('node:child_process')
const { dependencies: { 'better-sqlite3': version } } = require('./package.json')

const FIRST_WITH_BINARIES = 22
/** They say where the outer npm installs, and what. */
const OF_THE_OUTER = /^npm_config_(?:global|location|prefix|local_prefix|workspaces?|omit|include|save.*)$/i

if (Number.parseInt(process.versions.node) < FIRST_WITH_BINARIES && !isThere()) install()

function isThere () {
  try {
    return require('./node_modules/better-sqlite3/package.json').version === version
  } catch {
    // MODULE_NOT_FOUND
    return false
  }
}

function install () {
  const npm = process.env.npm_execpath?.endsWith('npm-cli.js') ? [process.execPath, process.env.npm_execpath] : ['npm']
  const [program, ...words] = [...npm, 'ci', '--prefix', __dirname]
  const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !OF_THE_OUTER.test(name)))
  try {
    execFileSync(program, words, { cwd: __dirname, env, stdio: 'inherit' })
  } catch {
    // npm has said why.
    process.exitCode = 1
  }
}
