module proa/paddle

go 1.18
