import { command, finding, inCode, type Check } from './finding.ts'
import { isLoopback } from '../system/loopback.ts'
import { optionLine } from './option-line.ts'
import type { Facts, Running } from './facts.ts'
import type { Config } from '../config/config.ts'

/** whether the master is looked after, up to date, and out of the reach of others */
export const checkMaster: Check = (facts) => {
  const { running, config } = facts
  return [...running ? [ofHealth(facts, running), ofKeeper(running), ofVersion(facts, running)] : [],
    ...running?.master.isShared ? [] : [ofAdmin(facts, config)]]
}

function ofHealth ({ config }: Facts, { health: { tone, text, hint } }: Running) {
  if (tone !== 'bad' && tone !== 'warn') return finding('health', 'ok', text)
  return finding('health', tone === 'bad' ? 'error' : 'warning', text, hint, [
    command('clusterdeck status', config.cwd)
  ])
}

function ofKeeper ({ isKept }: Running) {
  if (isKept) return finding('keeper', 'ok', 'A keeper holds the sockets and restarts the master')
  return finding('keeper', 'warning', 'The master runs without a keeper',
    'If the master dies, nobody starts the next one, and its workers end soon after it.', [
    inCode('Start the app without --no-keeper and CLUSTERDECK_KEEPER=off')
  ])
}

function ofVersion ({ config }: Facts, { master: { version }, installedVersion, isKept }: Running) {
  if (version === installedVersion) return finding('version', 'ok', `clusterdeck ${version} is what is installed`)
  return finding('version', 'warning', `clusterdeck ${version} runs, and ${installedVersion} is installed`,
    'The running master has none of the fixes of the installed version, and reads its files.',
    isKept ? [command('clusterdeck upgrade --wait', config.cwd)] : [])
}

function ofAdmin (facts: Facts, { admin: { host, tls } }: Config) {
  if (isLoopback(host)) return finding('admin', 'ok', 'The admin page is reached from this machine alone')
  if (tls.cert !== undefined)
    return finding('admin', 'ok', 'The admin page is reached from other machines by TLS alone')
  return finding('admin', 'warning', `Others reach the admin page at ${host} without TLS`,
    'Whoever sees the traffic has the token, and with it the app.', [optionLine(facts, { 'admin.host': '127.0.0.1' })])
}
