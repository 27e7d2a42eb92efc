module.exports = 'hello from pnpm-workspace'
