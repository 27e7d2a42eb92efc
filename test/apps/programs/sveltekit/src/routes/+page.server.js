export const load = () => ({ pid: process.pid })
