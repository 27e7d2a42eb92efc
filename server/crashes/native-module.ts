/** Which line of Node has which interface for native modules: its process.versions.modules. */
const LINES: Readonly<Record<string, number>> = Object.freeze({ 72: 12, 83: 14, 93: 16, 108: 18, 115: 20, 127: 22,
  137: 24, 147: 26 })
/** As Node says it, in one line or in several. */
const OF_ANOTHER_NODE =
  /The module '([^'\n]{1,1000})'\s+was compiled against a different Node\.js version using\s+NODE_MODULE_VERSION (\d{1,4})\. This version of Node\.js requires\s+NODE_MODULE_VERSION (\d{1,4})/

/** What helps a worker whose native module was built for another Node. `said`: by it, hostile; `node`: that runs it. */
export function nativeModuleHint (said: string, { file, version }: { file: string, version: string }): string | null {
  const [, module, built] = OF_ANOTHER_NODE.exec(said) ?? []
  if (module === undefined) return null
  const [, name] = /node_modules\/((?:@[\w.-]{1,100}\/)?[\w.-]{1,100})\/(?!.*node_modules\/)/.exec(module) ?? []
  const line = LINES[built]
  const builder = line === undefined ? `another Node (NODE_MODULE_VERSION ${built})` : `Node ${line}`
  const folder = file.slice(0, file.lastIndexOf('/'))
  return `${
    name ?? 'a native module'
  } was built by ${builder}, and Node ${version} runs it: build it again by PATH=${folder}:$PATH npm rebuild${
    name === undefined ? '' : ` ${name}`
  }, or set the option node to ${line ?? 'the one that has built it'}`
}
