// The processor of an Artillery script that names none, where something of it is made during the run.
module.exports = {};
